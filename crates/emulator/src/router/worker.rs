//! The router's thread: reads, waits and writes in real time around the [`Plane`], and measures itself.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fabric::HostId;
use units::{Span, Time};

use super::delivery::Delivery;
use super::frames::LONGEST;
use super::outcome::{RouterOutcome, bottleneck};
use super::plane::{Departure, Observer, Plane};
use crate::Error;
use crate::clock::{Clock, late_ns};
use crate::lateness::Recorder;
use crate::packet::{render, whole_segment};
use crate::pcapng::Captures;
use crate::processors::keep_router;
use crate::sys::{self, Waited};
use crate::tun::Tun;

/// The thread looks whether it is to stop at least so often.
const LOOK_UP: Duration = Duration::from_millis(20);
/// It sleeps at least so long between two looks at what is due, unless a host sends something: under load one look
/// does the work of many.
const BREATH: Duration = Duration::from_micros(20);
/// How long after a card takes packets again it is looked whether there are any: well before it falls idle.
const CARD_SLACK_PS: u64 = 50_000_000;
/// Packets read from one host before it is another's turn.
const TURN: usize = 16;
/// Above the kernel's own threads of no urgency, below those that keep the machine alive.
const PRIORITY: i32 = 50;

/// What the thread works with.
pub(super) struct Worker {
    pub(super) clock: Clock,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) plane: Plane,
    pub(super) output: Output,
    pub(super) real_time: bool,
}

/// One host's device.
struct Device {
    tun: Tun,
    /// Whether there may be something to read.
    ready: bool,
    /// Whether it is gone, with its namespace.
    gone: bool,
}

/// Where packets go.
pub(super) struct Output {
    devices: Vec<Device>,
    clock: Clock,
    captures: Option<Captures>,
    /// For headers, and for whole segments.
    scratch: Vec<u8>,
    lateness: Recorder,
    written: u64,
    unwritable: u64,
}

impl Output {
    pub(super) fn new(clock: Clock, tuns: Vec<Tun>, captures: Option<Captures>) -> Self {
        Self {
            devices: tuns.into_iter().map(|tun| Device { tun, ready: true, gone: false }).collect(),
            clock,
            captures,
            scratch: Vec::new(),
            lateness: Recorder::new(),
            written: 0,
            unwritable: 0,
        }
    }
}

impl Observer for Output {
    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { host, due_ps, frame, headers, segments, marked } = delivery;
        let payload = render(frame, headers, segments, marked, &mut self.scratch);
        self.lateness.record(late_ns(self.clock.now(), due_ps));
        let device = &mut self.devices[host.index()];
        match device.tun.send(&self.scratch, payload) {
            Ok(()) => self.written += 1,
            Err(_) => self.unwritable += 1,
        }
        // What it was given may make it send at once.
        device.ready = true;
    }

    fn depart(&mut self, departure: Departure) {
        let Departure { link, time_ps, frame, headers, segment, marked } = departure;
        let Some(captures) = &mut self.captures else { return };
        whole_segment(frame, headers, segment, marked, &mut self.scratch);
        captures.record(link, self.clock.realtime_ns + Time::from_ps(time_ps).ns(), &self.scratch);
    }
}

impl Worker {
    /// Routes until it is told to stop.
    pub(super) fn run(mut self) -> Result<RouterOutcome, Error> {
        // Without, timers are up to 50 us late; that is measured, like all lateness.
        let _ = sys::sharpen_timers();
        // Where it cannot be kept there, hosts' kernels share its processor.
        let _ = keep_router();
        let real_time = self.real_time && sys::schedule_real_time(PRIORITY).is_ok();
        let locked = real_time && sys::lock_memory().is_ok();
        let mut busy = Busy::new(self.clock);
        let mut reading = Recorder::new();
        let mut buffer = vec![0; LONGEST];
        let mut read = 0;
        let mut waited = Vec::new();
        let began = self.clock.now();
        while !self.stop.load(Ordering::Relaxed) {
            let woken = self.clock.now();
            busy.look(woken);
            // Rounds until neither network nor hosts have anything for now.
            loop {
                let now = self.clock.now();
                self.plane.advance(now.ps(), &mut self.output);
                let (packets, more) = self.read_hosts(now, &mut buffer);
                read += packets;
                if !more || self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            reading.record(late_ns(self.clock.now(), woken.ps()));
            self.sleep(woken, &mut waited)?;
        }
        if locked {
            sys::unlock_memory();
        }
        let ended = self.clock.now();
        self.plane.advance(ended.ps(), &mut Silent);
        let capture_missed = self.output.captures.take().map_or(Ok(0), Captures::finish)?;
        self.plane.refused().unwritable = self.output.unwritable;
        let (links, port_samples, refused) = self.plane.finish();
        let mut outcome = RouterOutcome {
            links,
            port_samples,
            lateness: self.output.lateness.lateness(),
            reading: reading.lateness(),
            cpu: busy.total(),
            busiest_second: busy.busiest,
            wall: ended.since(began),
            real_time,
            packets_read: read,
            packets_written: self.output.written,
            refused,
            device_drops: 0,
            capture_missed,
            bottleneck: None,
        };
        outcome.bottleneck = bottleneck(&outcome);
        Ok(outcome)
    }

    /// Reads what hosts send whose cards take it. Returns how many packets, and whether there may be more.
    fn read_hosts(&mut self, now: Time, buffer: &mut Vec<u8>) -> (u64, bool) {
        let (mut packets, mut more) = (0, false);
        for host in 0..self.output.devices.len() {
            let id = HostId(host as u32);
            for turn in 0..=TURN {
                let device = &mut self.output.devices[host];
                if !device.ready || device.gone || self.plane.card_takes_ps(id) > now.ps() {
                    break;
                }
                if turn == TURN {
                    more = true;
                    break;
                }
                match device.tun.receive(buffer) {
                    Ok(Some(length)) => {
                        // Not the time of before the read: what was delivered since, or a moment in which this
                        // thread did not run, may have made the host send only now, and a packet that leaves before
                        // it was sent shortens a round trip below what the path takes.
                        let now_ps = self.clock.now().ps();
                        self.plane.advance(now_ps, &mut self.output);
                        self.plane.accept(id, now_ps, buffer, length, &mut self.output);
                        packets += 1;
                    }
                    // Nothing now, or an error: the wait tells whether the device is gone.
                    Ok(None) | Err(_) => device.ready = false,
                }
            }
        }
        (packets, more)
    }

    /// Sleeps until something is due or a host whose card takes it has something to send.
    fn sleep(&mut self, woken: Time, waited: &mut Vec<(usize, Waited)>) -> Result<(), Error> {
        let now = self.clock.now();
        let mut next_ps = self.plane.next_ps().unwrap_or(u64::MAX);
        waited.clear();
        for (host, device) in self.output.devices.iter().enumerate().filter(|it| !it.1.gone) {
            let takes_ps = self.plane.card_takes_ps(HostId(host as u32));
            if takes_ps <= now.ps() {
                waited.push((host, Waited::for_read(device.tun.as_fd())));
            } else {
                next_ps = next_ps.min(takes_ps + CARD_SLACK_PS);
            }
        }
        let breath_ps = woken.ps() + BREATH.as_nanos() as u64 * 1_000;
        let timeout = Duration::from_nanos(next_ps.max(breath_ps).saturating_sub(now.ps()) / 1_000).min(LOOK_UP);
        let mut descriptors: Vec<Waited> = waited.iter().map(|it| it.1).collect();
        sys::wait(&mut descriptors, Some(timeout)).map_err(Error::system("wait for packets"))?;
        for (&(host, _), result) in waited.iter().zip(&descriptors) {
            let device = &mut self.output.devices[host];
            device.ready |= result.readable() || result.failed();
            device.gone |= result.failed();
        }
        // Hosts whose cards were full may have had something all the time.
        Ok(())
    }
}

/// Lets the last events happen without delivering anything: nobody reads any more.
struct Silent;

impl Observer for Silent {
    fn deliver(&mut self, _: Delivery) {}
}

/// How much processor time the thread takes.
struct Busy {
    clock: Clock,
    began_ns: u64,
    second: (Time, u64),
    /// The most in any second.
    busiest: Span,
}

impl Busy {
    fn new(clock: Clock) -> Self {
        let began_ns = sys::thread_cpu_ns();
        Self { clock, began_ns, second: (clock.now(), began_ns), busiest: Span::ZERO }
    }

    fn look(&mut self, now: Time) {
        if now.since(self.second.0) < Span::from_s(1) {
            return;
        }
        let used_ns = sys::thread_cpu_ns();
        let part = Span::from_ns((used_ns - self.second.1) as i64);
        // The look may come late: by what a second of that time had.
        let per_second = u128::from(part.unsigned_ps()) * 1_000_000_000_000
            / u128::from(now.since(self.second.0).unsigned_ps().max(1));
        self.busiest = self.busiest.max(Span::from_ps(per_second as i64));
        self.second = (self.clock.now(), used_ns);
    }

    fn total(&self) -> Span {
        Span::from_ns((sys::thread_cpu_ns() - self.began_ns) as i64)
    }
}
