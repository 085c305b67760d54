//! The closed set of laws that hosts run by default, dispatched inline.

use units::{Bytes, Rate, Time};

use crate::credits::Credits;
use crate::params::Parameters;
use crate::{Ack, ControlLaw, Cookie, LawActions, Loss, Notification, PathInfo, SendLimits, Sent};

/// Passes every law to the macro `$then`: its description, its type in this crate, its module, and whether it is also built
/// for the kernel's TCP. All lists of laws are generated from this one, in this order.
#[macro_export]
macro_rules! laws {
    ($then:ident) => {
        $then! {
            /// Uno's loop.
            UnoCc in unocc for kernel;
            /// GEMINI.
            Gemini in gemini for kernel;
            /// DCTCP.
            Dctcp in dctcp for kernel;
            /// MPRDMA.
            MpRdma in mprdma for kernel;
            /// BBR, version 1.
            Bbr in bbr;
            /// Cubic.
            Cubic in cubic for kernel;
            /// `NewReno`.
            NewReno in newreno for kernel;
            /// Vegas.
            Vegas in vegas;
            /// Copa.
            Copa in copa;
            /// DCQCN's reaction point.
            Dcqcn in dcqcn;
            /// TIMELY.
            Timely in timely;
            /// HPCC and HPCC*.
            Hpcc in hpcc;
            /// DCTCP as a rate.
            DctcpRate in dctcp_rate;
            /// `ExpressPass`.
            ExpressPass in expresspass;
            /// FlashPass.
            FlashPass in flashpass;
            /// No control at all.
            LineRate in line_rate;
            /// A constant window.
            Fixed in fixed for kernel;
            /// Ultra Ethernet's NSCC.
            Nscc in nscc;
            /// The project's own.
            Strait in strait for kernel;
        }
    };
}

macro_rules! types {
    ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
        $(pub use crate::$module::$law;)*

        /// Any of the laws. [`catalog::build`](crate::catalog::build) makes one from its name and settings.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Law {
            $(#[doc = $doc] $law($law),)*
        }

        /// Evaluates `$call` with `$inner` as the law inside `$any`.
        macro_rules! inside {
            ($any:expr, $inner:ident => $call:expr) => {
                match $any {
                    $(Law::$law($inner) => $call,)*
                }
            };
        }

        $(impl Configured for $law {
            type Params = crate::$module::Params;

            #[inline]
            fn configured(path: &PathInfo, params: Self::Params) -> Self {
                Self::new(path, params)
            }
        })*

        #[cfg(test)]
        const SIZES: &[(&str, usize)] = &[$((stringify!($law), size_of::<$law>()),)*];
    };
}
laws!(types);

impl ControlLaw for Law {
    #[inline]
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        inside!(self, law => law.on_sent(sent))
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        inside!(self, law => law.on_ack(ack));
    }

    #[inline]
    fn on_loss(&mut self, loss: &Loss) {
        inside!(self, law => law.on_loss(loss));
    }

    #[inline]
    fn on_notification(&mut self, notification: &Notification) {
        inside!(self, law => law.on_notification(notification));
    }

    #[inline]
    fn on_timer(&mut self, now: Time) {
        inside!(self, law => law.on_timer(now));
    }

    #[inline]
    fn next_timer(&self) -> Time {
        inside!(self, law => law.next_timer())
    }

    #[inline(always)]
    fn send_limits(&self) -> SendLimits {
        inside!(self, law => law.send_limits())
    }

    fn rate_change_is_immediate(&self) -> bool {
        inside!(self, law => law.rate_change_is_immediate())
    }

    fn reads_direct_cnps(&self) -> bool {
        inside!(self, law => law.reads_direct_cnps())
    }

    fn ssthresh(&self) -> Option<Bytes> {
        inside!(self, law => law.ssthresh())
    }

    fn credits(&self) -> Option<Credits> {
        inside!(self, law => law.credits())
    }

    fn credit_rate(&self) -> Rate {
        inside!(self, law => law.credit_rate())
    }

    fn actions(&self) -> LawActions {
        inside!(self, law => law.actions())
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        inside!(self, law => law.trace(emit));
    }
}

/// A law that is created from a path and its parameters, for hosts that select it by its type.
pub trait Configured: ControlLaw + Clone + PartialEq + Sized {
    /// The parameters of the law.
    type Params: Parameters;

    /// The law for a flow on `path`.
    fn configured(path: &PathInfo, params: Self::Params) -> Self;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds the size of laws, because a flow stores its law inline. A law that exceeds this should state the reason.
    #[test]
    fn laws_are_small() {
        // BBR is the largest: 352 bytes, with 88 for its 13 parameters and 80 for ten bandwidths; counts have 32 bits each.
        // BBR and HPCC (last reports of nine ports, 16 bytes each) have no spare bits for the tag of the variant.
        assert!(size_of::<Law>() <= 360, "{SIZES:?}");
        assert!(size_of::<Ack>() <= 128, "{SIZES:?}");
    }
}
