#![no_std]
use laws::*;
macro_rules! l { ($t:ty, $a:ident) => {
#[unsafe(no_mangle)]
pub unsafe extern "C" fn $a(state: *mut $t, ack: *const Ack, loss: *const Loss, out: *mut Permit) {
    let s = unsafe { &mut *state };
    s.on_ack(unsafe { &*ack });
    s.on_loss(unsafe { &*loss });
    unsafe { *out = s.permit(); }
}
}}
l!(Gemini, gemini_on_ack);
l!(UnoCc, unocc_on_ack);
l!(Dctcp, dctcp_on_ack);
l!(Cubic, cubic_on_ack);
l!(NewReno, newreno_on_ack);
l!(Bbr, bbr_on_ack);
l!(MpRdma, mprdma_on_ack);
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
