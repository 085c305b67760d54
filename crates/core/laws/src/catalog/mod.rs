//! Every law with its parameters: the source of scenario files, validation and documentation.

mod settings;

pub use crate::info::{EcnSupport, LawInfo};
use crate::{Law, PathInfo};

pub use self::settings::{SettingError, check, check_pairs};
pub use crate::params::{MAX as MAX_PARAMS, ParamInfo, ParamValue, Parameters, Quantity};

macro_rules! kinds {
    ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
        /// A law by name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum LawKind {
            $(#[doc = $doc] $law,)*
        }

        impl LawKind {
            /// All of them.
            pub const ALL: [Self; [$(Self::$law),*].len()] = [$(Self::$law),*];

            /// Returns the kind of `law`.
            pub const fn of(law: &Law) -> Self {
                match law {
                    $(Law::$law(_) => Self::$law,)*
                }
            }

            /// Its names, signals and parameters, as lists of laws show them.
            pub const fn info(self) -> &'static LawInfo {
                match self {
                    $(Self::$law => &crate::$module::INFO,)*
                }
            }
        }
    };
}
crate::laws!(kinds);

impl LawKind {
    /// The law of that name, as in files.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.info().name == name)
    }

    /// Returns the law for a flow on `path`, with the defaults of all parameters.
    pub fn with_defaults(self, path: &PathInfo) -> Law {
        macro_rules! made {
            ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
                match self {
                    $(Self::$law => Law::$law(crate::$law::new(path, crate::$module::Params::for_path(path))),)*
                }
            };
        }
        crate::laws!(made)
    }
}

/// Creates the law `kind` for a flow on `path`, with defaults for all parameters not named in `settings`. Of two settings
/// with one name the later applies.
///
/// # Errors
/// If a setting names no parameter of the law, is of another kind, or is out of range.
pub fn build<'a>(kind: LawKind, path: &PathInfo, settings: &[(&'a str, ParamValue)]) -> Result<Law, SettingError<'a>> {
    macro_rules! made {
        ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
            match kind {
                $(LawKind::$law => {
                    let mut params = crate::$module::Params::for_path(path);
                    for (name, value) in settings {
                        check(kind.info(), name, *value)?;
                        params.set(name, *value);
                    }
                    Law::$law(crate::$law::new(path, params))
                })*
            }
        };
    }
    Ok(crate::laws!(made))
}

/// Returns the parameters of the law `kind` as words, by their positions in its table: defaults for a flow on `path`,
/// replaced by `settings`, which [`check`] has accepted. For hosts that apply them to another path's defaults
/// ([`Parameters::overridden`]).
pub fn words<'a>(
    kind: LawKind,
    path: &PathInfo,
    settings: impl Iterator<Item = (&'a str, ParamValue)>,
) -> [u64; MAX_PARAMS] {
    macro_rules! worded {
        ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
            match kind {
                $(LawKind::$law => {
                    let mut params = crate::$module::Params::for_path(path);
                    settings.for_each(|(name, value)| params.set(name, value));
                    params.words()
                })*
            }
        };
    }
    crate::laws!(worded)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::testbed::{LONG_PATH, PATH, ack, history, loss, marked};
    use crate::{Ack, ControlLaw, LossCause, Notification, SendLimits};
    use proptest::prelude::*;
    use std::format;
    use std::string::{String, ToString};
    use units::{Bytes, Frac, Rate, Span};

    /// The longest and fastest path that the project promises: 5 GB of window.
    const MAX: PathInfo = PathInfo {
        base_rtt: Span::from_ms(100),
        intra_rtt: Span::from_us(14),
        line_rate: Rate::from_gbps(400),
        mss: Bytes::new(4_096),
    };

    fn law(kind: LawKind, path: &PathInfo, settings: &[(&str, ParamValue)]) -> Law {
        build(kind, path, settings).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the limits after 500 packets, each acknowledged with or without a mark and a notification.
    fn permitted(kind: LawKind, settings: &[(&str, ParamValue)], marks: bool, notifies: bool) -> SendLimits {
        permitted_with(kind, settings, (marks, notifies), Bytes::MAX)
    }

    /// Like [`permitted`], with `left` bytes remaining.
    fn permitted_with(
        kind: LawKind,
        settings: &[(&str, ParamValue)],
        (marks, notifies): (bool, bool),
        left: Bytes,
    ) -> SendLimits {
        let mut law = self::law(kind, &LONG_PATH, settings);
        for now_us in (10..5_010).step_by(10) {
            let ack = if marks { marked(&LONG_PATH, now_us) } else { ack(&LONG_PATH, now_us) };
            if law.next_timer() <= ack.now {
                law.on_timer(ack.now);
            }
            if notifies {
                law.on_notification(&Notification::DirectCnp { now: ack.now });
            }
            law.on_ack(&Ack { bytes_remaining: left, ..ack });
        }
        law.send_limits()
    }

    #[test]
    fn laws_use_the_signals_of_their_description() {
        for kind in LawKind::ALL {
            let info = kind.info();
            let uses = |settings: &[(&str, ParamValue)], marks: bool, notifies: bool| {
                permitted(kind, settings, false, false) != permitted(kind, settings, marks, notifies)
            };
            assert_eq!(uses(&[], true, false), info.marks == EcnSupport::Used, "{}", info.name);
            if let EcnSupport::If(switch) = info.marks {
                assert!(uses(&[(switch, ParamValue::Switch(true))], true, false), "{}", info.name);
            }
            assert_eq!(uses(&[], false, true), info.notified, "{}", info.name);
            let marked_with = |left| permitted_with(kind, &[], (true, false), left);
            assert_eq!(
                marked_with(Bytes::ZERO) != marked_with(Bytes::new(1 << 40)),
                info.reads_bytes_remaining,
                "{}",
                info.name
            );
            assert_eq!(self::law(kind, &PATH, &[]).reads_direct_cnps(), info.notified, "{}", info.name);
        }
    }

    fn page(kind: LawKind) -> String {
        let path = format!("{}/../../../docs/src/laws/{}.md", env!("CARGO_MANIFEST_DIR"), kind.info().name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn law_names_round_trip() {
        for kind in LawKind::ALL {
            assert_eq!(LawKind::from_name(kind.info().name), Some(kind), "two laws have one name");
        }
        assert_eq!(LawKind::from_name("UnoCC"), None);
    }

    #[test]
    fn every_parameter_changes_its_law_within_its_range() {
        for kind in LawKind::ALL {
            let default = format!("{:?}", self::law(kind, &PATH, &[]));
            for param in kind.info().params {
                let changed = [param.lowest, param.highest].map(|value| {
                    assert_eq!(value.quantity(), param.quantity);
                    format!("{:?}", self::law(kind, &PATH, &[(param.name, value)])) != default
                });
                assert!(changed.contains(&true), "{} {} does nothing", kind.info().name, param.name);
            }
        }
    }

    #[test]
    fn the_book_lists_every_parameter() {
        for kind in LawKind::ALL {
            for param in kind.info().params {
                let quantity = format!("{:?}", param.quantity).to_lowercase();
                let range = match param.quantity {
                    Quantity::Switch => "true or false".to_string(),
                    _ => format!("{} to {}", param.lowest, param.highest),
                };
                let row = format!("| `{}` | {quantity} | {} | {range} | {} |", param.name, param.default, param.doc);
                assert!(page(kind).contains(&row), "{}.md needs this row:\n{row}", kind.info().name);
            }
        }
    }

    /// Every parameter of every law at both ends of its range, as words over another path's defaults.
    #[test]
    fn parameters_override_defaults() {
        fn check<P: Parameters + PartialEq + core::fmt::Debug>() {
            for (index, param) in P::TABLE.iter().enumerate() {
                for value in [param.lowest, param.highest] {
                    let mut overrides = P::for_path(&LONG_PATH);
                    overrides.set(param.name, value);
                    let mut expected = P::for_path(&PATH);
                    expected.set(param.name, value);
                    assert_eq!(
                        P::for_path(&PATH).overridden(&overrides.words(), 1 << index),
                        expected,
                        "{}",
                        param.name
                    );
                }
            }
            assert_eq!(P::for_path(&PATH).overridden(&P::for_path(&LONG_PATH).words(), 0), P::for_path(&PATH));
        }
        macro_rules! all {
            ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
                $(check::<crate::$module::Params>();)*
            };
        }
        crate::laws!(all);
    }

    #[test]
    fn the_later_of_two_settings_wins() {
        let window = |bytes| ("window", ParamValue::Bytes(Bytes::new(bytes)));
        let law = self::law(LawKind::Fixed, &PATH, &[window(10_000), window(20_000)]);
        assert_eq!(law.send_limits(), SendLimits::window(Bytes::new(20_000)));
    }

    /// NSCC subtracts lost bytes from its window, for any cause of the loss.
    #[test]
    fn timeouts_collapse_the_window_of_laws_for_lossy_networks() {
        for kind in LawKind::ALL {
            let mut law = self::law(kind, &PATH, &[]);
            let before = law.send_limits().window;
            law.on_loss(&loss(0, 100, LossCause::Timeout));
            let credited = [LawKind::ExpressPass, LawKind::FlashPass].contains(&kind);
            let lossless = [LawKind::Dcqcn, LawKind::Timely, LawKind::Hpcc, LawKind::DctcpRate, LawKind::LineRate]
                .contains(&kind)
                || credited;
            let kept = lossless || matches!(kind, LawKind::UnoCc | LawKind::Strait | LawKind::Fixed);
            let reduced = if kind == LawKind::Nscc { before - PATH.mss } else { PATH.mss };
            assert_eq!(law.send_limits().window, if kept { before } else { reduced }, "{}", kind.info().name);
        }
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        for kind in [
            LawKind::Gemini,
            LawKind::Dctcp,
            LawKind::MpRdma,
            LawKind::Cubic,
            LawKind::NewReno,
            LawKind::Vegas,
            LawKind::Copa,
        ] {
            for app_limited in [false, true] {
                let mut law = self::law(kind, &PATH, &[]);
                let before = law.send_limits().window;
                law.on_ack(&Ack { app_limited, ..ack(&PATH, 0) });
                assert_eq!(law.send_limits().window > before, !app_limited, "{}", kind.info().name);
            }
        }
    }

    /// Laws with slow start, and no others, give up an unused window.
    #[test]
    fn an_unused_window_is_reduced() {
        for kind in LawKind::ALL {
            let mut law = self::law(kind, &PATH, &[]);
            law.on_loss(&loss(0, 20, LossCause::Reordered));
            let (before, unchanged) = (law.send_limits().window, law.clone());
            let threshold = PATH.mss.times(100);
            law.on_notification(&Notification::Unused { window: before + PATH.mss, ssthresh: Bytes::ZERO });
            assert_eq!(law, unchanged, "{}", kind.info().name);
            law.on_notification(&Notification::Unused { window: PATH.mss.times(3), ssthresh: threshold });
            if [LawKind::Gemini, LawKind::Dctcp, LawKind::Cubic, LawKind::NewReno, LawKind::Vegas].contains(&kind) {
                assert_eq!((law.send_limits().window, law.ssthresh()), (PATH.mss.times(3), Some(threshold)));
                law.on_notification(&Notification::Unused { window: Bytes::ZERO, ssthresh: PATH.mss });
                assert_eq!((law.send_limits().window, law.ssthresh()), (PATH.mss, Some(threshold)));
            } else {
                assert_eq!(law, unchanged, "{}", kind.info().name);
            }
        }
    }

    #[test]
    fn a_path_of_zeros_does_not_panic() {
        for kind in LawKind::ALL {
            assert!(!self::law(kind, &PathInfo::NONE, &[]).send_limits().window.is_zero());
        }
    }

    proptest! {
        /// Limits are sane after any reports of a host, on any path and with any one parameter at either end of its
        /// range.
        #[test]
        fn permits_are_sane_after_any_history(
            events in history(), which in 0..LawKind::ALL.len(), path in 0..3usize, param in 0..20usize, high: bool,
        ) {
            let (kind, path) = (LawKind::ALL[which], [PATH, LONG_PATH, MAX][path]);
            let info = kind.info();
            let param = &info.params[param % info.params.len()];
            let value = if high { param.highest } else { param.lowest };
            let mut law = self::law(kind, &path, &[(param.name, value)]);
            let bounded = info.param("max_bdp").is_some() && param.name != "max_bdp";
            let mut bounded_law = bounded.then(|| {
                self::law(kind, &path, &[(param.name, value), ("max_bdp", ParamValue::Fraction(Frac::ONE))])
            });
            for event in &events {
                let before = law.actions();
                event.report_to(&mut law);
                let (send_limits, after) = (law.send_limits(), law.actions());
                prop_assert!(send_limits.window >= path.mss && send_limits.window <= crate::Window::LIMIT);
                prop_assert!(!send_limits.pacing.is_zero());
                prop_assert!(after.increases >= before.increases && after.loss_cuts >= before.loss_cuts);
                if let Some(law) = &mut bounded_law {
                    event.report_to(law);
                    prop_assert!(law.send_limits().window <= path.bdp());
                }
            }
            law.trace(&mut |name, value| assert!(!name.is_empty() && value >= 0, "{name} {value}"));
        }

        /// Packets of another size, at any time: a window of at least one packet is kept, and it is never below one packet.
        #[test]
        fn laws_follow_the_mss(
            events in history(), sizes in proptest::collection::vec(proptest::option::of(1..70_000u64), 300),
            which in 0..LawKind::ALL.len(), path in 0..3usize,
        ) {
            let path = [PATH, LONG_PATH, MAX][path];
            let mut law = self::law(LawKind::ALL[which], &path, &[]);
            let mut mss = path.mss;
            for (event, size) in events.iter().zip(sizes) {
                if let Some(size) = size {
                    let (before, old) = (law.send_limits().window, mss);
                    mss = Bytes::new(size);
                    law.on_notification(&Notification::Mss(mss));
                    let window = law.send_limits().window;
                    prop_assert!(window >= mss && window <= before.max(mss));
                    prop_assert!(before == old || window == before.max(mss));
                }
                event.report_to(&mut law);
                prop_assert!(law.send_limits().window >= mss && law.send_limits().window <= crate::Window::LIMIT);
                prop_assert!(!law.send_limits().pacing.is_zero());
            }
        }

        /// A notification with the same packet size changes nothing.
        #[test]
        fn an_unchanged_mss_changes_nothing(events in history(), which in 0..LawKind::ALL.len()) {
            let mut law = self::law(LawKind::ALL[which], &PATH, &[]);
            for event in &events {
                event.report_to(&mut law);
                let before = law.clone();
                law.on_notification(&Notification::Mss(PATH.mss));
                prop_assert_eq!(&law, &before);
            }
        }

        /// An acknowledgement with a mark results in no larger window than the same one without.
        #[test]
        fn a_mark_never_raises_the_window(events in history(), which in 0..LawKind::ALL.len()) {
            // Quick Adapt compares with a window that a mark has just cut, so a mark may keep it from acting.
            let without_quick_adapt = [("quick_adapt", ParamValue::Switch(false))];
            // NSCC's Quick Adapt acts on acknowledgements that it would have ignored with a mark.
            let adapts = [LawKind::UnoCc, LawKind::Nscc, LawKind::Strait].contains(&LawKind::ALL[which]);
            let settings: &[_] = if adapts { &without_quick_adapt } else { &[] };
            let mut law = self::law(LawKind::ALL[which], &PATH, settings);
            for event in &events {
                if let crate::testbed::Event::Ack(ack) = event {
                    let (mut with, mut without) = (law.clone(), law.clone());
                    with.on_ack(&Ack { marked: ack.acked, ..*ack });
                    without.on_ack(&Ack { marked: Bytes::ZERO, ..*ack });
                    prop_assert!(with.send_limits().window <= without.send_limits().window);
                }
                event.report_to(&mut law);
            }
        }

        /// A loss never raises a window, and the same loss reported twice counts once. Exceptions are BBR and NSCC, which
        /// subtract lost bytes from their windows: a host reports no loss twice.
        #[test]
        fn losses_never_raise_a_window(events in history(), which in 0..LawKind::ALL.len()) {
            let mut law = self::law(LawKind::ALL[which], &PATH, &[]);
            for event in &events {
                let before = law.send_limits().window;
                event.report_to(&mut law);
                if let crate::testbed::Event::Loss(loss) = event {
                    let after_first = law.send_limits().window;
                    prop_assert!(after_first <= before);
                    event.report_to(&mut law);
                    if loss.sent_at < loss.now && ![LawKind::Bbr, LawKind::Nscc].contains(&LawKind::ALL[which]) {
                        prop_assert_eq!(law.send_limits().window, after_first);
                    }
                }
            }
        }
    }
}
