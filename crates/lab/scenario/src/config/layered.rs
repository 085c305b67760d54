//! Tables in layers: the file's settings, a scheme's changes, and changes of either at single places, all from one list
//! of keys.

/// Defines a table, the table of a scheme's changes to it, and, if there are places, the table of the changes at a place
/// and the settings of a place.
///
/// Keys read `key: Type = default;`. A text after the default documents the key in the other tables, in addition to `as`.
/// - `open`: keys without a default: `key: Type, "text";`.
/// - `alone`: keys that no place has.
/// - `places`: keys of places, with their documentation in the scheme's table.
/// - `settings`: all keys with their final values, and fields of its own.
macro_rules! layered {
    (
        $(#[doc = $doc:literal])+
        $main:ident {
            $($(#[doc = $key_doc:literal])+ $key:ident: $type:ty = $default:expr $(, $said:literal)?;)*
        }
        as $same:literal;
        $(#[doc = $over_doc:literal])+
        over $over:ident;
    ) => {
        $crate::decode::table! {
            $(#[doc = $doc])+
            $main {
                $($(#[doc = $key_doc])+ $key: $type = $default;)*
            }
        }

        $crate::decode::table! {
            $(#[doc = $over_doc])+
            $over {
                $(#[doc = $same] $(#[doc = $said])? $key: Option<$type> = None;)*
            }
        }

        impl $main {
            /// Applies a scheme's changes.
            fn take(&mut self, over: &$over) {
                $(if let Some(value) = &over.$key { self.$key = value.clone(); })*
            }
        }
    };
    (
        $(#[doc = $doc:literal])+
        $main:ident {
            $($(#[doc = $key_doc:literal])+ $key:ident: $type:ty = $default:expr $(, $said:literal)?;)*
        }
        open { $($(#[doc = $open_doc:literal])+ $open:ident: $open_type:ty, $open_said:literal;)* }
        alone { $($(#[doc = $alone_doc:literal])+ $alone:ident: $alone_type:ty = $alone_default:expr $(, $alone_said:literal)?;)* }
        places { $($(#[doc = $place_doc:literal])+ $place:ident, $place_said:literal;)* }
        as $same:literal;
        $(#[doc = $over_doc:literal])+
        over $over:ident;
        $(#[doc = $patch_doc:literal])+
        patch $patch:ident;
        $(#[doc = $settings_doc:literal])+
        settings $settings:ident { $($own:ident: $own_type:ty,)* }
    ) => {
        $crate::decode::table! {
            $(#[doc = $doc])+
            $main {
                $($(#[doc = $key_doc])+ $key: $type = $default;)*
                $($(#[doc = $alone_doc])+ $alone: $alone_type = $alone_default;)*
                $($(#[doc = $open_doc])+ $open: Option<$open_type> = None;)*
                $($(#[doc = $place_doc])+ $place: Option<$patch> = None;)*
            }
        }

        $crate::decode::table! {
            $(#[doc = $over_doc])+
            $over {
                $(#[doc = $same] $(#[doc = $said])? $key: Option<$type> = None;)*
                $(#[doc = $same] $(#[doc = $alone_said])? $alone: Option<$alone_type> = None;)*
                $(#[doc = $same] #[doc = $open_said] $open: Option<$open_type> = None;)*
                $(#[doc = $place_said] $place: Option<$patch> = None;)*
            }
        }

        $crate::decode::table! {
            $(#[doc = $patch_doc])+
            $patch {
                $(#[doc = $same] $(#[doc = $said])? $key: Option<$type> = None;)*
                $(#[doc = $same] #[doc = $open_said] $open: Option<$open_type> = None;)*
            }
        }

        $(#[doc = $settings_doc])+
        #[derive(Clone, PartialEq, Debug)]
        #[allow(missing_docs)]
        pub struct $settings {
            $(pub $key: $type,)*
            $(pub $own: $own_type,)*
        }

        impl $settings {
            /// Returns the settings of the file's table, and these fields in addition to its keys.
            fn of(table: &$main, $($own: $own_type),*) -> Self {
                Self { $($key: table.$key.clone(),)* $($own),* }
            }

            /// Applies a scheme's changes of the keys that places have.
            fn take_over(&mut self, over: &$over) {
                $(if let Some(value) = &over.$key { self.$key = value.clone(); })*
            }

            /// Applies the changes at a place.
            fn take_patch(&mut self, patch: &$patch) {
                $(if let Some(value) = &patch.$key { self.$key = value.clone(); })*
            }
        }
    };
}

pub(crate) use layered;
