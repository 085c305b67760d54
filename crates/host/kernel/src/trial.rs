//! A law in the kernel called without a socket, compared with the same law compiled natively, to show that both behave
//! identically.

#![allow(unsafe_code, reason = "it talks to the kernel")]

use libbpf_rs::{MapCore as _, MapFlags, Object, ProgramInput};

use laws::{Ack, Configured, Loss};
use units::Span;

use crate::object::{self, Programs};
use crate::sockets::flow;
use crate::tcp_adapter::{Config, FLOW_WORDS, KernelFlow, SocketReport, SocketSettings};
use crate::{Error, KernelLaw, Settings};

/// A call of a flow.
#[derive(Clone, Copy, Debug)]
pub enum TrialCall {
    /// The flow begins, as its socket reports.
    Begin(SocketReport),
    /// The kernel reports an acknowledgement.
    Acked(SocketReport),
    /// The kernel reports an episode of loss.
    Lost(SocketReport),
    /// The law's own acknowledgement, as the simulator makes it; without reports of ports, which cannot be copied to it.
    LawAck(Ack<'static>),
    /// The law's own loss.
    LawLoss(Loss),
    /// The law's own notification of a new base round trip.
    LawBaseRtt(Span),
}

/// A law's programs, loaded but not attached.
#[derive(Debug)]
pub struct KernelTrial {
    object: Object,
    config: Config,
    /// Slot and call, as the C adapter lays them out.
    bytes: Vec<u8>,
}

const REPORT_BYTES: usize = size_of::<SocketReport>();
const SETTINGS_BYTES: usize = size_of::<SocketSettings>();
const SLOT_BYTES: usize = REPORT_BYTES + SETTINGS_BYTES + FLOW_WORDS * 8;
const CALL_WORDS: usize = 16;

impl KernelTrial {
    /// Loads a law's programs.
    ///
    /// # Errors
    /// As [`crate::Loaded::load`].
    pub fn new(row: &'static KernelLaw, settings: &Settings) -> Result<Self, Error> {
        let config = settings.config(row)?;
        let object = object::load(row, row.tcp_name, &config, Programs::LawAndTrial)?;
        Ok(Self { object, config, bytes: vec![0; SLOT_BYTES + CALL_WORDS * 8] })
    }

    /// Returns the law's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Makes a call in the kernel.
    ///
    /// # Errors
    /// When the kernel does not run it.
    pub fn call(&mut self, call: &TrialCall) -> Result<(), Error> {
        let kind: u64 = match call {
            TrialCall::Begin(report) => self.put(0, report, 0),
            TrialCall::Acked(report) => self.put(0, report, 1),
            TrialCall::Lost(report) => self.put(0, report, 2),
            TrialCall::LawAck(ack) => self.put(SLOT_BYTES, ack, 3),
            TrialCall::LawLoss(loss) => self.put(SLOT_BYTES, loss, 4),
            TrialCall::LawBaseRtt(span) => self.put(SLOT_BYTES, span, 5),
        };
        let failed = |reason: String| Error::Failed { action: "run the law in the kernel", reason };
        let map = self.object.maps().find(|map| map.name() == "trials");
        let map = map.ok_or_else(|| failed("the object has no map `trials`".into()))?;
        let key = 0u32.to_ne_bytes();
        map.update(&key, &self.bytes, MapFlags::ANY).map_err(|error| failed(error.to_string()))?;
        let program = self.object.progs_mut().find(|program| program.name() == "try_call");
        let program = program.ok_or_else(|| failed("the object has no `try_call`".into()))?;
        let mut context = kind.to_ne_bytes();
        let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
        let output = program.test_run(input).map_err(|error| failed(error.to_string()))?;
        if output.return_value != 0 {
            return Err(failed(format!("it returned {}", output.return_value)));
        }
        let read = map.lookup(&key, MapFlags::ANY).map_err(|error| failed(error.to_string()))?;
        self.bytes = read.filter(|bytes| bytes.len() == self.bytes.len()).ok_or_else(|| failed("no result".into()))?;
        Ok(())
    }

    /// Puts a value where the C adapter expects it and passes `kind` on.
    fn put<T: Copy>(&mut self, at: usize, value: &T, kind: u64) -> u64 {
        const { assert!(size_of::<T>() <= CALL_WORDS * 8 || size_of::<T>() == REPORT_BYTES) };
        let target = &mut self.bytes[at..at + size_of::<T>()];
        // SAFETY: the slice is as long as the value. Padding bytes are copied, never read.
        unsafe { std::ptr::copy_nonoverlapping((&raw const *value).cast::<u8>(), target.as_mut_ptr(), target.len()) };
        kind
    }

    /// The flow as the kernel holds it.
    pub fn flow<L: Configured>(&self) -> KernelFlow<L> {
        let mut words = [0; FLOW_WORDS];
        for (word, bytes) in words.iter_mut().zip(self.bytes[REPORT_BYTES + SETTINGS_BYTES..SLOT_BYTES].chunks_exact(8))
        {
            *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
        }
        flow(&words)
    }

    /// Returns the values that the kernel would apply to a socket.
    pub fn socket_settings(&self) -> SocketSettings {
        let word = |at: usize| self.bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        SocketSettings { window_packets: word(REPORT_BYTES), pacing_bytes_per_s: word(REPORT_BYTES + 8) }
    }
}

/// Makes a call natively.
pub fn call_natively<L: Configured>(flow: &mut KernelFlow<L>, config: &Config, call: &TrialCall) {
    match call {
        TrialCall::Begin(report) => *flow = KernelFlow::new(config, report),
        TrialCall::Acked(report) => flow.acked(report),
        TrialCall::Lost(report) => flow.lost(report),
        TrialCall::LawAck(ack) => flow.law.on_ack(ack),
        TrialCall::LawLoss(loss) => flow.law.on_loss(loss),
        TrialCall::LawBaseRtt(span) => flow.law.on_notification(&laws::Notification::BaseRtt(*span)),
    }
}
