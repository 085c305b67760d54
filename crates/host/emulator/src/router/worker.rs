//! The router's thread: reads, waits and writes in real time around the [`Router`], and measures itself.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fabric::HostId;
use router::packet::{render, render_corrupted, wire_segment};
use router::{Delivery, MAX_FRAME, NIC_BACKLOG, NetworkOutcome, Observer, PortDeparture, Router};
use units::{Span, Time};

use super::outcome::{RouterOutcome, TOO_LATE, bottleneck};
use crate::Error;
use crate::clock::{Now, late_ns};
use crate::lateness::Recorder;
use crate::pcapng::Captures;
use crate::processors::keep_router;
use crate::sys::{self, PollDescriptor};
use crate::tun::Tun;

/// Maximum time between two checks whether the thread is to stop.
const STOP_CHECK_INTERVAL: Span = Span::from_ms(20);
/// Minimum sleep between two checks for due events, unless a host sends a packet: under load one check does the work of
/// many.
const MIN_SLEEP: Span = Span::from_us(20);
/// Packets read between two sleeps from which on a router is under load. Hosts then wait for its next check, as for a
/// NIC that coalesces interrupts, so that the router reads several packets each time it wakes.
const COALESCE_PACKETS: u64 = 3;
/// Maximum wait of hosts, counted from the last check.
const COALESCE_TIME: Duration = Duration::from_micros(30);
/// Time from when a NIC accepts packets again to the check for new ones: well before it falls idle.
const NIC_SLACK: Span = Span::from_us(50);
/// Packets read from one host before it is the next one's turn.
const READ_BUDGET: usize = 16;
/// Above the kernel's own threads of no urgency, below those that keep the machine alive.
const PRIORITY: i32 = 50;

/// State of the thread.
pub(super) struct Worker<C> {
    pub(super) clock: C,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) router: Router,
    pub(super) output: Output<C>,
    pub(super) real_time: bool,
    pub(super) stalls: Stalls,
}

/// Time in which the thread did not run although it had not meant to sleep: it was stopped, or its machine was. Packets and
/// rounds do not show it, since a single one of them is late by all of that time.
#[derive(Default)]
pub(super) struct Stalls {
    /// Latest time of the next update.
    due: Time,
    total: Span,
}

impl Stalls {
    /// Records that the thread has read the clock.
    fn update(&mut self, now: Time) {
        let late = now.saturating_since(self.due);
        if late > TOO_LATE {
            self.total += late;
        }
        self.due = now;
    }

    /// The thread sleeps until then, unless it is woken before.
    fn sleep_until(&mut self, time: Time) {
        self.due = time;
    }
}

/// One host's device.
struct Device {
    host: HostId,
    tun: Tun,
    /// True if a packet may be readable.
    ready: bool,
    /// True if the device is gone, with its namespace.
    gone: bool,
}

/// Output of packets.
pub(super) struct Output<C> {
    /// Those of created hosts, in order.
    devices: Vec<Device>,
    /// By host: its device.
    by_host: BTreeMap<HostId, usize>,
    clock: C,
    captures: Option<Captures>,
    /// Nanoseconds between 1970 and time zero.
    zero_ns: u64,
    /// For headers, and for whole segments.
    scratch: Vec<u8>,
    lateness: Recorder,
    written: u64,
    unwritable: u64,
}

impl<C> Output<C> {
    pub(super) fn new(clock: C, zero_ns: u64, tuns: Vec<(HostId, Tun)>, captures: Option<Captures>) -> Self {
        Self {
            by_host: (0..).zip(&tuns).map(|(index, &(host, _))| (host, index)).collect(),
            devices: tuns.into_iter().map(|(host, tun)| Device { host, tun, ready: true, gone: false }).collect(),
            clock,
            captures,
            zero_ns,
            scratch: Vec::new(),
            lateness: Recorder::new(),
            written: 0,
            unwritable: 0,
        }
    }
}

impl<C: Now> Observer for Output<C> {
    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { host, due, frame, headers, segments, mark, corrupted } = delivery;
        let payload = if let Some(bits) = corrupted {
            render_corrupted(frame, headers, segments.start, mark, bits, &mut self.scratch);
            &[]
        } else {
            render(frame, headers, segments, mark, &mut self.scratch)
        };
        self.lateness.record(late_ns(self.clock.now(), due));
        let Some(device) = self.by_host.get(&host).map(|&index| &mut self.devices[index]) else {
            return self.unwritable += 1;
        };
        match device.tun.send(&self.scratch, payload) {
            Ok(()) => self.written += 1,
            Err(_) => self.unwritable += 1,
        }
        // The packets delivered to it may make it send at once.
        device.ready = true;
    }

    fn depart(&mut self, departure: PortDeparture) {
        let PortDeparture { link, time, frame, headers, segment, mark } = departure;
        let Some(captures) = &mut self.captures else { return };
        wire_segment(frame, headers, segment, mark, &mut self.scratch);
        captures.record(link, self.zero_ns + time.ns(), &self.scratch);
    }
}

impl<C: Now + Copy> Worker<C> {
    /// Routes packets until `stop` is set.
    pub(super) fn run(mut self) -> Result<RouterOutcome, Error> {
        // Without, timers are up to 50 us late; that is measured, like all lateness.
        let _ = sys::sharpen_timers();
        // Where it cannot be kept there, hosts' kernels share its processor.
        let _ = keep_router();
        let real_time = self.real_time && sys::schedule_real_time(PRIORITY).is_ok();
        let locked = real_time && sys::lock_memory().is_ok();
        let mut busy = Busy::new(self.clock);
        let mut reading = Recorder::new();
        let mut buffer = vec![0; MAX_FRAME];
        let mut read = 0;
        let mut polled = Vec::new();
        let began = self.clock.now();
        self.stalls.sleep_until(began);
        while !self.stop.load(Ordering::Relaxed) {
            let woken = self.clock.now();
            busy.update(woken);
            self.stalls.update(woken);
            if !self.router.has_begun() {
                self.stalls.total = Span::ZERO;
            }
            let read_before = read;
            // Rounds until neither network nor hosts have anything for now.
            loop {
                let now = self.clock.now();
                self.stalls.update(now);
                self.router.advance(now, &mut self.output);
                let (packets, more) = self.read_hosts(now, &mut buffer);
                read += packets;
                if !more || self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            reading.record(late_ns(self.clock.now(), woken));
            if read - read_before >= COALESCE_PACKETS {
                let past = Duration::from_nanos(late_ns(self.clock.now(), woken));
                let rest = COALESCE_TIME.saturating_sub(past);
                if !rest.is_zero() {
                    let now = self.clock.now();
                    self.stalls.update(now);
                    self.stalls.sleep_until(now + Span::from_ns(rest.as_nanos() as i64));
                    sys::wait(&mut [], Some(rest)).map_err(Error::system("wait"))?;
                }
            }
            self.sleep(woken, &mut polled)?;
        }
        if locked {
            sys::unlock_memory();
        }
        let ended = self.clock.now();
        self.router.advance(ended, &mut Silent);
        let captures = self.output.captures.take().map(Captures::finish).transpose()?.unwrap_or_default();
        self.router.refused().unwritable = self.output.unwritable;
        let NetworkOutcome { links, port_samples, switches, refused } = self.router.finish();
        let mut outcome = RouterOutcome {
            links,
            port_samples,
            switches,
            lateness: self.output.lateness.lateness(),
            reading: reading.lateness(),
            stalled: self.stalls.total,
            cpu: busy.total(),
            busiest_second: busy.busiest,
            wall: ended.since(began),
            real_time,
            packets_read: read,
            packets_written: self.output.written,
            refused,
            device_drops: 0,
            capture_missed: captures.packets,
            captures_ended: captures.ended,
            captures_unnamed: captures.unnamed,
            bottleneck: None,
        };
        outcome.bottleneck = bottleneck(&outcome);
        Ok(outcome)
    }

    /// Reads packets of hosts with a NIC that accepts them. Returns the number of packets, and whether there may be more.
    fn read_hosts(&mut self, mut now: Time, buffer: &mut Vec<u8>) -> (u64, bool) {
        let (mut packets, mut more) = (0, false);
        for host in 0..self.output.devices.len() {
            let id = self.output.devices[host].host;
            for count in 0..=READ_BUDGET {
                let device = &mut self.output.devices[host];
                if !device.ready || device.gone || self.router.nic_accepts_at(id, NIC_BACKLOG) > now {
                    break;
                }
                if count == READ_BUDGET {
                    more = true;
                    break;
                }
                match device.tun.receive(buffer) {
                    Ok(Some(length)) => {
                        // Not the time before the read: a packet delivered since, or a moment in which this thread did not
                        // run, may have made the host send only now, and a packet that leaves before it was sent shortens a
                        // round trip below the path's minimum.
                        now = self.clock.now();
                        self.stalls.update(now);
                        self.router.advance(now, &mut self.output);
                        self.router.accept(id, now, buffer, length, &mut self.output);
                        packets += 1;
                    }
                    // Nothing now, or an error: the wait reports whether the device is gone.
                    Ok(None) | Err(_) => device.ready = false,
                }
            }
        }
        (packets, more)
    }

    /// Sleeps until an event is due or a host with a NIC that accepts packets has one to send.
    fn sleep(&mut self, woken: Time, polled: &mut Vec<(usize, PollDescriptor)>) -> Result<(), Error> {
        let now = self.clock.now();
        let mut next = self.router.next_at().unwrap_or(now + STOP_CHECK_INTERVAL);
        polled.clear();
        for (host, device) in self.output.devices.iter().enumerate().filter(|it| !it.1.gone) {
            let takes_at = self.router.nic_accepts_at(device.host, NIC_BACKLOG);
            if takes_at <= now {
                polled.push((host, PollDescriptor::for_read(device.tun.as_fd())));
            } else {
                next = next.min(takes_at + NIC_SLACK);
            }
        }
        let rest = next.max(woken + MIN_SLEEP).saturating_since(now).min(STOP_CHECK_INTERVAL);
        let timeout = Duration::from_nanos(rest.ns() as u64);
        self.stalls.update(now);
        self.stalls.sleep_until(now + rest);
        let mut descriptors: Vec<PollDescriptor> = polled.iter().map(|it| it.1).collect();
        sys::wait(&mut descriptors, Some(timeout)).map_err(Error::system("wait for packets"))?;
        for (&(host, _), result) in polled.iter().zip(&descriptors) {
            let device = &mut self.output.devices[host];
            device.ready |= result.readable() || result.failed();
            device.gone |= result.failed();
        }
        Ok(())
    }
}

/// An observer that delivers nothing while the last events happen: the hosts no longer read.
struct Silent;

impl Observer for Silent {
    fn deliver(&mut self, _: Delivery) {}
}

/// Processor time used by the thread.
struct Busy<C> {
    clock: C,
    began_ns: u64,
    second: (Time, u64),
    /// The maximum in any second.
    busiest: Span,
}

impl<C: Now> Busy<C> {
    fn new(clock: C) -> Self {
        let began_ns = sys::thread_cpu_ns();
        let second = (clock.now(), began_ns);
        Self { clock, began_ns, second, busiest: Span::ZERO }
    }

    fn update(&mut self, now: Time) {
        if now.since(self.second.0) < Span::from_s(1) {
            return;
        }
        let used_ns = sys::thread_cpu_ns();
        let part = Span::from_ns((used_ns - self.second.1) as i64);
        // Measured over at least a second: the share per second of the time since the last measurement.
        let per_second = u128::from(part.unsigned_ps()) * 1_000_000_000_000
            / u128::from(now.since(self.second.0).unsigned_ps().max(1));
        self.busiest = self.busiest.max(Span::from_ps(per_second as i64));
        self.second = (self.clock.now(), used_ns);
    }

    fn total(&self) -> Span {
        Span::from_ns((sys::thread_cpu_ns() - self.began_ns) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::SeriesConfig;
    use fabric::topology::{SingleSwitch, single_switch};
    use fabric::{PortConfig, Routes};
    use router::packet::{UdpHeader, write_udp};
    use router::{Addresses, RouterInputs, RouterTime, plan};
    use std::cell::Cell;
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use units::Rate;

    /// A clock that advances on each read, as if the thread did not run in between.
    #[derive(Clone, Copy)]
    struct Slow<'a> {
        polls: &'a Cell<u32>,
        step: Span,
    }

    impl Now for Slow<'_> {
        fn now(&self) -> Time {
            self.polls.set(self.polls.get() + 1);
            Time::ZERO + self.step.times(self.polls.get())
        }
    }

    const RATE: Rate = Rate::from_gbps(1);
    const DELAY: Span = Span::from_us(10);

    /// A worker between three hosts on a switch, and the hosts' ends of their devices.
    fn worker(clock: Slow<'_>) -> (Worker<Slow<'_>>, Vec<UnixDatagram>) {
        let port = PortConfig::new(RATE, DELAY);
        let network = single_switch(&SingleSwitch { hosts: vec![(port, port); 3] }).unwrap();
        let router = Router::new(&RouterInputs {
            network: &network,
            routes: &Routes::new(&network).unwrap(),
            addresses: &Addresses::new(&plan(&network).unwrap()),
            seed: 1,
            coalesce: Span::ZERO,
            join: true,
            series: &SeriesConfig::default(),
            watched: &[],
            mtu: 1500,
            run_start: &Arc::default(),
            time: RouterTime::Real,
        });
        let (ends, tuns) = (0..3)
            .map(|number| {
                let (host, device) = UnixDatagram::pair().unwrap();
                for end in [&host, &device] {
                    end.set_nonblocking(true).unwrap();
                }
                (host, (HostId(number), Tun::of(File::from(OwnedFd::from(device)))))
            })
            .unzip();
        let output = Output::new(clock, 0, tuns, None);
        (Worker { clock, stop: Arc::default(), router, output, real_time: false, stalls: Stalls::default() }, ends)
    }

    /// A packet of 100 bytes for the host of that number, counted from 1.
    fn packet(to: u8) -> Vec<u8> {
        let address = |host: u8| std::net::SocketAddr::from(([10, 198, 0, host], 5_001));
        let mut frame = Vec::new();
        write_udp(&UdpHeader { source: address(9), destination: address(to), ecn: 2 }, &[0; 72], &mut frame);
        frame
    }

    /// Returns the time at which a host's NIC falls idle.
    fn idle_at(worker: &Worker<Slow>, host: u32) -> Time {
        worker.router.nic_accepts_at(HostId(host), NIC_BACKLOG) + NIC_BACKLOG
    }

    /// A single long stop counts in full; a planned sleep and short delays do not.
    #[test]
    fn stall_time_accumulates() {
        let mut stalls = Stalls::default();
        for ms in [0, 1, 2] {
            stalls.update(Time::from_ms(ms));
        }
        stalls.sleep_until(Time::from_ms(22));
        stalls.update(Time::from_ms(22));
        assert_eq!(stalls.total, Span::ZERO);
        // Woken before its time.
        stalls.sleep_until(Time::from_ms(42));
        stalls.update(Time::from_ms(30));
        stalls.update(Time::from_ms(630));
        stalls.sleep_until(Time::from_ms(650));
        stalls.update(Time::from_ms(850));
        assert_eq!(stalls.total, Span::from_ms(800));
    }

    /// A packet that a host sends in response to a delivery cannot leave before that delivery.
    #[test]
    fn packets_arrive_at_the_time_of_their_read() {
        let polls = Cell::new(0);
        let step = Span::from_us(300);
        let (mut worker, ends) = worker(Slow { polls: &polls, step });
        ends[0].send(&packet(2)).unwrap();
        let before = worker.clock.now();
        let (packets, more) = worker.read_hosts(before, &mut vec![0; MAX_FRAME]);
        assert_eq!((packets, more), (1, false));
        // 100 bytes take 800 ns.
        assert_eq!(idle_at(&worker, 0), before + step + Span::from_ns(800));
    }

    /// Events due by the time of a packet are processed before the packet is read, even if they were not due when the
    /// round began: events are processed in order of time.
    #[test]
    fn due_events_precede_reads() {
        let polls = Cell::new(0);
        let (mut worker, ends) = worker(Slow { polls: &polls, step: Span::from_us(300) });
        ends[0].send(&packet(3)).unwrap();
        worker.read_hosts(worker.clock.now(), &mut vec![0; MAX_FRAME]);
        assert!(ends[2].recv(&mut [0; 200]).is_err(), "it is on its way");
        ends[1].send(&packet(3)).unwrap();
        worker.sleep(worker.clock.now(), &mut Vec::new()).unwrap();
        worker.read_hosts(worker.clock.now(), &mut vec![0; MAX_FRAME]);
        assert!(ends[2].recv(&mut [0; 200]).is_ok(), "the first one has arrived before the second one left");
        assert_eq!(worker.output.written, 1);
    }

    #[test]
    fn hosts_share_the_read_budget() {
        let polls = Cell::new(0);
        let (mut worker, ends) = worker(Slow { polls: &polls, step: Span::from_us(10) });
        for _ in 0..50 {
            ends[0].send(&packet(3)).unwrap();
        }
        ends[1].send(&packet(3)).unwrap();
        let mut buffer = vec![0; MAX_FRAME];
        let (packets, more) = worker.read_hosts(worker.clock.now(), &mut buffer);
        assert_eq!((packets, more), (READ_BUDGET as u64 + 1, true));
        // Later than the NIC's maximum backlog: only the times matter here.
        assert!(idle_at(&worker, 1) > Time::ZERO + NIC_BACKLOG, "the other host had its turn");
        let mut read = packets;
        while read < 51 {
            let (packets, _) = worker.read_hosts(worker.clock.now(), &mut buffer);
            assert!(packets > 0, "{read} of 51 read, and no more come");
            read += packets;
        }
    }
}
