//! How fast bytes cross this machine's loopback: `cargo run --release -p narrows-transport --example throughput [PACKET] [PATHS]`.

use std::sync::Arc;
use std::time::Instant;

use laws::Path;
use proto::identity::Trust;
use proto::service::Service;
use proto::settings::Settings;
use transport::{Config, Endpoint, wait};

#[allow(clippy::disallowed_methods)] // An example may take the time.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let packet: u16 = args.get(1).map_or(Ok(1_400), |text| text.parse())?;
    let paths: u8 = args.get(2).map_or(Ok(1), |text| text.parse())?;
    let kind = laws::catalog::Kind::from_name(args.get(3).map_or("cubic", |name| name)).ok_or("no such law")?;
    let law = move |path: &Path| laws::catalog::build(kind, path, &[]).expect("a law");
    let mut settings = Settings::new(Service::named("throughput"), Arc::new(law));
    (settings.max_packet, settings.paths) = (packet, paths);
    let config = Config::new(settings)?;
    let listener = Endpoint::listen("127.0.0.1:0".parse()?, &config)?;
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let listening = std::thread::spawn(move || {
        wait(async {
            let connection = listener.accept().await.expect("a caller").admit().expect("a connection");
            let mut stream = connection.accept_stream().await.expect("a stream").receive;
            let (mut buffer, mut total) = (vec![0; 1 << 20], 0u64);
            loop {
                match stream.read(&mut buffer).await {
                    Ok(count) if count > 0 => total += count as u64,
                    _ => return total,
                }
            }
        })
    });
    let endpoint = Endpoint::call_from("127.0.0.1:0".parse()?, &config)?;
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
        Ok::<_, transport::Error>(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    drop(endpoint);
    assert_eq!(listening.join().expect("a thread"), total);
    println!("{:.2} Gb/s", total as f64 * 8e-9 / seconds);
    Ok(())
}
