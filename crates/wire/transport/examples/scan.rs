//! Cost of unsolicited datagrams: a transfer of 200 Mb/s over this machine's loopback, alone and with 20,000 random
//! datagrams a second to its listener: `cargo run --release -p narrows-transport --example scan [SECONDS
//! [DATAGRAMS_A_SECOND]]`. Prints the rates, and the processor time of an unsolicited datagram.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use proto::identity::Trust;
use proto::service::Service;
use proto::settings::{Settings, defaults_of};
use transport::{Config, Endpoint, Error, wait};

/// Offered load of the transfer, in bytes a millisecond: 200 Mb/s.
const OFFERED: usize = 25_000;

fn seconds(clock: ClockId) -> f64 {
    clock_gettime(clock).map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

/// Sends random datagrams of 20 to 1,400 bytes, evenly spread. Returns their number, and the processor time used.
#[allow(clippy::disallowed_methods)] // An example may take the time.
fn scan(address: SocketAddr, rate: u64, stop: &AtomicBool) -> std::io::Result<(u64, f64)> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let (begun, mut sent, mut state) = (Instant::now(), 0, 1u64);
    let mut datagram = [0; 1_400];
    while !stop.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64;
        while sent < due {
            for chunk in datagram.chunks_exact_mut(8) {
                state = units::mix64(state + 1);
                chunk.copy_from_slice(&state.to_le_bytes());
            }
            socket.send_to(&datagram[..20 + (state % 1_380) as usize], address)?;
            sent += 1;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok((sent, seconds(ClockId::CLOCK_THREAD_CPUTIME_ID)))
}

#[allow(clippy::disallowed_methods)] // An example may take the time.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let duration_s: u64 = args.get(1).map_or(Ok(5), |text| text.parse())?;
    let rate: u64 = args.get(2).map_or(Ok(20_000), |text| text.parse())?;
    let kind = laws::catalog::LawKind::from_name("bbr").ok_or("no such law")?;
    let config = Config::new(Settings::new(Service::named("scan"), defaults_of(kind)))?;
    let listener = Endpoint::listen("127.0.0.1:0".parse()?, &config)?;
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let received = Arc::new(AtomicU64::new(0));
    let counted = received.clone();
    std::thread::spawn(move || {
        wait(async {
            let connection = listener.accept().await.ok_or(Error::Endpoint)?.admit()?;
            let mut stream = connection.accept_stream().await?.receive;
            let mut buffer = vec![0; 1 << 20];
            while let count @ 1.. = stream.read(&mut buffer).await? {
                counted.fetch_add(count as u64, Ordering::Relaxed);
            }
            Ok::<_, Error>(())
        })
    });
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?, &config)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            wait(async {
                let connection = endpoint.connect(address, trust, None).await?;
                let mut stream = connection.open_one_way().await?;
                let (data, mut written, begun) = (vec![7; OFFERED], 0u64, Instant::now());
                while !stop.load(Ordering::Relaxed) {
                    while written < begun.elapsed().as_millis() as u64 {
                        stream.write_all(&data).await?;
                        written += 1;
                    }
                    std::thread::sleep(Duration::from_micros(500));
                }
                Ok::<_, Error>(())
            })
        });
        let measure = |label: &str| {
            let (before, cpu) = (received.load(Ordering::Relaxed), seconds(ClockId::CLOCK_PROCESS_CPUTIME_ID));
            std::thread::sleep(Duration::from_secs(duration_s));
            let mbps = (received.load(Ordering::Relaxed) - before) as f64 * 8e-6 / duration_s as f64;
            let cpu = seconds(ClockId::CLOCK_PROCESS_CPUTIME_ID) - cpu;
            println!(
                "{label}: {mbps:.1} Mb/s, {:.2?} of processor time a second",
                Duration::from_secs_f64(cpu / duration_s as f64)
            );
            cpu
        };
        std::thread::sleep(Duration::from_secs(1));
        let alone = measure("alone");
        let ends = AtomicBool::new(false);
        let (during_scan, scanned) = std::thread::scope(|inner| {
            let scanner = inner.spawn(|| scan(address, rate, &ends));
            let during_scan = measure("beside the scan");
            ends.store(true, Ordering::Relaxed);
            (during_scan, scanner.join())
        });
        let (sent, own) = scanned.map_err(|_| "the scanner panicked")??;
        let each = (during_scan - alone - own) / sent as f64;
        println!(
            "{sent} datagrams, {:.2?} of processor time each beside label sending them took",
            Duration::from_secs_f64(each.max(0.0))
        );
        stop.store(true, Ordering::Relaxed);
        sender.join().map_err(|_| "the sender panicked")??;
        Ok(())
    })
}
