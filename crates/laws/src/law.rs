//! The closed set of laws, dispatched inline: what hosts run by default.

use units::{Rate, Time};

use crate::credits::Credits;
use crate::params::Parameters;
use crate::{Ack, Acted, ControlLaw, Cookie, Loss, Notification, Path, Permit, Sent};
use crate::{
    Bbr, Copa, Cubic, Dcqcn, Dctcp, DctcpRate, ExpressPass, Fixed, FlashPass, Gemini, Hpcc, LineRate, MpRdma, NewReno,
    Timely, UnoCc, Vegas,
};
use crate::{
    bbr, copa, cubic, dcqcn, dctcp, dctcp_rate, expresspass, fixed, flashpass, gemini, hpcc, line_rate, mprdma,
    newreno, timely, unocc, vegas,
};

/// Any of the laws. [`catalog::build`](crate::catalog::build) makes one from its name and settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Law {
    /// Uno's loop.
    UnoCc(UnoCc),
    /// GEMINI.
    Gemini(Gemini),
    /// DCTCP.
    Dctcp(Dctcp),
    /// MPRDMA.
    MpRdma(MpRdma),
    /// BBR, version 1.
    Bbr(Bbr),
    /// Cubic.
    Cubic(Cubic),
    /// `NewReno`.
    NewReno(NewReno),
    /// Vegas.
    Vegas(Vegas),
    /// Copa.
    Copa(Copa),
    /// A constant window.
    Fixed(Fixed),
    /// DCQCN's reaction point.
    Dcqcn(Dcqcn),
    /// TIMELY.
    Timely(Timely),
    /// HPCC and HPCC*.
    Hpcc(Hpcc),
    /// DCTCP as a rate.
    DctcpRate(DctcpRate),
    /// No control at all.
    LineRate(LineRate),
    /// `ExpressPass`.
    ExpressPass(ExpressPass),
    /// FlashPass.
    FlashPass(FlashPass),
}

/// Evaluates `$call` with `$law` as the law inside `$any`.
macro_rules! inside {
    ($any:expr, $law:ident => $call:expr) => {
        match $any {
            Law::UnoCc($law) => $call,
            Law::Gemini($law) => $call,
            Law::Dctcp($law) => $call,
            Law::MpRdma($law) => $call,
            Law::Bbr($law) => $call,
            Law::Cubic($law) => $call,
            Law::NewReno($law) => $call,
            Law::Vegas($law) => $call,
            Law::Copa($law) => $call,
            Law::Fixed($law) => $call,
            Law::Dcqcn($law) => $call,
            Law::Timely($law) => $call,
            Law::Hpcc($law) => $call,
            Law::DctcpRate($law) => $call,
            Law::LineRate($law) => $call,
            Law::ExpressPass($law) => $call,
            Law::FlashPass($law) => $call,
        }
    };
}

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

    #[inline]
    fn permit(&self) -> Permit {
        inside!(self, law => law.permit())
    }

    fn retimes(&self) -> bool {
        inside!(self, law => law.retimes())
    }

    fn reads_direct_cnps(&self) -> bool {
        inside!(self, law => law.reads_direct_cnps())
    }

    fn credits(&self) -> Option<Credits> {
        inside!(self, law => law.credits())
    }

    fn credit_rate(&self) -> Rate {
        inside!(self, law => law.credit_rate())
    }

    fn acted(&self) -> Acted {
        inside!(self, law => law.acted())
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        inside!(self, law => law.trace(emit));
    }
}

/// A law that is made from a path and its parameters, for hosts that know it by its type.
pub trait Configured: ControlLaw + Clone + PartialEq + Sized {
    /// What can be set.
    type Params: Parameters;

    /// The law for a flow on `path`.
    fn configured(path: &Path, params: Self::Params) -> Self;
}

macro_rules! configured {
    ($($law:ident in $module:ident),*) => {
        $(impl Configured for $law {
            type Params = $module::Params;

            #[inline]
            fn configured(path: &Path, params: Self::Params) -> Self {
                Self::new(path, params)
            }
        })*
    };
}

configured! {
    UnoCc in unocc, Gemini in gemini, Dctcp in dctcp, MpRdma in mprdma, Bbr in bbr, Cubic in cubic, NewReno in newreno,
    Vegas in vegas, Copa in copa, Fixed in fixed, Dcqcn in dcqcn, Timely in timely, Hpcc in hpcc, DctcpRate in dctcp_rate, LineRate in line_rate,
    ExpressPass in expresspass, FlashPass in flashpass
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow holds its law in place: a law that outgrows this should say why.
    #[test]
    fn laws_are_small() {
        let sizes = [
            ("UnoCc", size_of::<UnoCc>()),
            ("Gemini", size_of::<Gemini>()),
            ("Dctcp", size_of::<Dctcp>()),
            ("MpRdma", size_of::<MpRdma>()),
            ("Bbr", size_of::<Bbr>()),
            ("Cubic", size_of::<Cubic>()),
            ("NewReno", size_of::<NewReno>()),
            ("Vegas", size_of::<Vegas>()),
            ("Copa", size_of::<Copa>()),
            ("Fixed", size_of::<Fixed>()),
            ("Dcqcn", size_of::<Dcqcn>()),
            ("Timely", size_of::<Timely>()),
            ("Hpcc", size_of::<Hpcc>()),
            ("DctcpRate", size_of::<DctcpRate>()),
            ("LineRate", size_of::<LineRate>()),
            ("ExpressPass", size_of::<ExpressPass>()),
            ("FlashPass", size_of::<FlashPass>()),
            ("Law", size_of::<Law>()),
            ("Ack", size_of::<Ack>()),
        ];
        // BBR is the largest: 336. HPCC is nearly as large (nine ports' last reports of 16 bytes), so that no law
        // leaves room inside for the tag of the variant.
        assert!(size_of::<Law>() <= 344, "{sizes:?}");
        assert!(size_of::<Ack>() <= 128, "{sizes:?}");
    }
}
