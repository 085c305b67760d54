//! Throughput over this machine's loopback: `cargo run --release -p narrows-transport --example throughput [PACKET]
//! [PATHS]`.

use std::time::Instant;

use proto::identity::Trust;
use proto::service::Service;
use proto::settings::{Settings, defaults_of};
use transport::{Config, Endpoint, Error, wait};

#[allow(clippy::disallowed_methods)] // An example may take the time.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let packet: u16 = args.get(1).map_or(Ok(1_400), |text| text.parse())?;
    let paths: u8 = args.get(2).map_or(Ok(1), |text| text.parse())?;
    let kind = laws::catalog::LawKind::from_name(args.get(3).map_or("cubic", |name| name)).ok_or("no such law")?;
    let mut settings = Settings::new(Service::named("throughput"), defaults_of(kind));
    (settings.max_packet, settings.paths) = (packet, paths);
    let config = Config::new(settings)?;
    let listener = Endpoint::listen("127.0.0.1:0".parse()?, &config)?;
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let listening = std::thread::spawn(move || {
        wait(async {
            let connection = listener.accept().await.ok_or(Error::Endpoint)?.admit()?;
            let mut stream = connection.accept_stream().await?.receive;
            let (mut buffer, mut total) = (vec![0; 1 << 20], 0u64);
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return Ok::<_, Error>(total),
                    count => total += count as u64,
                }
            }
        })
    });
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?, &config)?;
    let total = 4u64 << 30;
    let begun = Instant::now();
    wait(async {
        let connection = endpoint.connect(address, trust, None).await?;
        let mut stream = connection.open_message(total).await?;
        let data = vec![7; 1 << 20];
        for _ in 0..total >> 20 {
            stream.write_all(&data).await?;
        }
        stream.delivered().await?;
        println!("{:?}", connection.paths());
        Ok::<_, Error>(())
    })?;
    let took = begun.elapsed();
    drop(endpoint);
    assert_eq!(listening.join().map_err(|_| "the listener panicked")??, total);
    println!("{total} bytes in {took:.2?}: {:.2} Gb/s", total as f64 * 8e-9 / took.as_secs_f64());
    Ok(())
}
