//! Payload for each second of processor time, both ends together, encrypted, over this machine's loopback: ours, quinn's and
//! s2n-quic's, in turns: `cargo run --release -- [PACKET] [MEBIBYTES] [ROUNDS]`. Ours also with blocks of 8 data and 2 parity
//! packets.
//!
//! Also the time that messages take over quinn with BBR on an open, idle connection, from the first write until the peer has
//! all, for comparison with `narrows perf --messages`: `quinn-listen ADDRESS FILE` writes its certificate to a file and waits
//! for a client; `quinn-messages ADDRESS FILE BYTES COUNT` connects to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};

mod messages;

/// Address that an endpoint binds to.
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Bytes of one write.
const WRITE_BYTES: usize = 1 << 20;

fn cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let of = |time: nix::sys::time::TimeVal| Duration::from_micros((time.tv_sec() * 1_000_000 + time.tv_usec()) as u64);
    Ok(of(usage.user_time()) + of(usage.system_time()))
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["quinn-listen", address, file] => return messages::listen(address.parse()?, file),
        ["quinn-messages", address, file, bytes, count] => {
            return messages::send(address.parse()?, file, bytes.parse()?, count.parse()?);
        }
        _ => {}
    }
    let args: Vec<u64> = words.iter().map(|text| text.parse().context(text.clone())).collect::<Result<_>>()?;
    let packet = *args.first().unwrap_or(&1_400) as u16;
    let bytes = args.get(1).unwrap_or(&1_024) << 20;
    let rounds = *args.get(2).unwrap_or(&3);
    type Transfer = fn(u16, u64) -> Result<()>;
    let peers: [(&str, Transfer); 4] = [
        ("narrows", |packet, bytes| narrows(packet, bytes, "off")),
        ("narrows, coded", |packet, bytes| narrows(packet, bytes, "8,2")),
        ("quinn", quinn),
        ("s2n-quic", s2n),
    ];
    let mut best = [0f64; 4];
    for _ in 0..rounds {
        for ((name, transfer), best) in peers.iter().zip(&mut best) {
            let (began, used) = (Instant::now(), cpu()?);
            transfer(packet, bytes).with_context(|| format!("{name} failed"))?;
            let (wall, used) = (began.elapsed().as_secs_f64(), (cpu()? - used).as_secs_f64());
            let bits = bytes as f64 * 8e-9;
            println!("{name:15} {:6.2} Gb/s  {:6.2} Gbit for each second of processor time", bits / wall, bits / used);
            *best = best.max(bits / used);
        }
    }
    for (name, peer_best) in [("quinn", best[2]), ("s2n-quic", best[3])] {
        let [plain, coded] = [best[0], best[1]].map(|ours| ours / peer_best);
        println!("best: narrows is {plain:.2} times {name}, coded {coded:.2} times");
    }
    Ok(())
}

fn narrows(packet: u16, bytes: u64, coding: &str) -> Result<()> {
    use transport::{Config, Endpoint, wait};
    let kind = laws::catalog::LawKind::from_name("cubic").context("cubic")?;
    let law = move |path: &laws::PathInfo| laws::catalog::build(kind, path, &[]).expect("cubic");
    let mut settings = proto::settings::Settings::new(proto::service::Service::named("bench"), Arc::new(law));
    (settings.max_packet, settings.coding) = (packet, coding.parse()?);
    // As quinn's below.
    (settings.send_buffer, settings.limits.max_stream_data) = (16 << 20, 16 << 20);
    let config = Config::new(settings)?;
    let listener = Endpoint::listen(ANY, &config)?;
    let address = listener.address();
    let trust = proto::identity::Trust::Fingerprint(config.identity.fingerprint());
    let reader = std::thread::spawn(move || {
        wait(async {
            let connection = listener.accept().await.context("no client")?.admit()?;
            let mut stream = connection.accept_stream().await?.receive;
            let (mut part, mut total) = (vec![0; WRITE_BYTES], 0);
            loop {
                let count = stream.read(&mut part).await? as u64;
                total += count;
                if count == 0 {
                    // The client closes.
                    connection.closed().await;
                    return Ok::<_, anyhow::Error>(total);
                }
            }
        })
    });
    let client = Endpoint::client(ANY, &config)?;
    wait(async {
        let connection = client.connect(address, trust, None).await?;
        let mut stream = connection.open_message(bytes).await?;
        let part = vec![7; WRITE_BYTES];
        for _ in 0..bytes / WRITE_BYTES as u64 {
            stream.write_all(&part).await?;
        }
        stream.delivered().await
    })?;
    drop(client);
    anyhow::ensure!(reader.join().expect("a thread")? == bytes);
    Ok(())
}

fn certificate() -> Result<(rustls::pki_types::CertificateDer<'static>, rustls::pki_types::PrivateKeyDer<'static>)> {
    let generated = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(generated.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    Ok((generated.cert.into(), key))
}

fn quinn(packet: u16, bytes: u64) -> Result<()> {
    let (certificate, key) = certificate()?;
    let mut transport = quinn::TransportConfig::default();
    transport.initial_mtu(packet).min_mtu(packet);
    transport.congestion_controller_factory(Arc::new(quinn::congestion::CubicConfig::default()));
    transport.stream_receive_window((16u32 << 20).into()).receive_window((64u32 << 20).into()).send_window(16 << 20);
    let transport = Arc::new(transport);
    let mut server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
    server.transport_config(transport.clone());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport);
    // A thread for each end, as ours has.
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let listening = runtime()?;
    let endpoint = {
        let _in = listening.enter();
        quinn::Endpoint::server(server, ANY)?
    };
    let address = endpoint.local_addr()?;
    let reader = std::thread::spawn(move || {
        listening.block_on(async move {
            let connection = endpoint.accept().await.context("no client")?.await?;
            let mut stream = connection.accept_uni().await?;
            let (mut part, mut total) = (vec![0; WRITE_BYTES], 0);
            while let Some(count) = stream.read(&mut part).await? {
                total += count as u64;
            }
            connection.closed().await;
            Ok::<_, anyhow::Error>(total)
        })
    });
    runtime()?.block_on(async {
        let mut endpoint = quinn::Endpoint::client(ANY)?;
        endpoint.set_default_client_config(client);
        let connection = endpoint.connect(address, "localhost")?.await?;
        let mut stream = connection.open_uni().await?;
        let part = vec![7; WRITE_BYTES];
        for _ in 0..bytes / WRITE_BYTES as u64 {
            stream.write_all(&part).await?;
        }
        stream.finish()?;
        stream.stopped().await?;
        connection.close(0u32.into(), b"");
        endpoint.wait_idle().await;
        Ok::<_, anyhow::Error>(())
    })?;
    anyhow::ensure!(reader.join().expect("a thread")? == bytes);
    Ok(())
}

fn s2n(packet: u16, bytes: u64) -> Result<()> {
    use s2n_quic::provider::io::tokio::Builder;
    use s2n_quic::provider::limits::Limits;
    let (certificate, key) = certificate()?;
    let io = |packet: u16| Builder::default().with_receive_address(ANY)?.with_max_mtu(packet)?.with_initial_mtu(packet)?.build();
    let limits = || {
        Limits::default()
            .with_data_window(64 << 20)?
            .with_unidirectional_data_window(16 << 20)?
            .with_max_send_buffer_size(16 << 20)
    };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tls = s2n_quic::provider::tls::default::Server::builder()
        .with_certificate(vec![certificate.to_vec()], key.secret_der().to_vec())
        .map_err(|error| anyhow::anyhow!("{error}"))?
        .build()
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let listening = runtime()?;
    let mut server = {
        let _in = listening.enter();
        s2n_quic::Server::builder()
            .with_tls(tls)?
            .with_io(io(packet + 28)?)?
            .with_limits(limits()?)?
            .start()
            .map_err(|error| anyhow::anyhow!("{error}"))?
    };
    let address = server.local_addr()?;
    let reader = std::thread::spawn(move || {
        listening.block_on(async move {
            let mut connection = server.accept().await.context("no client")?;
            let mut stream = connection.accept_receive_stream().await?.context("no stream")?;
            let mut total = 0;
            while let Some(part) = stream.receive().await? {
                total += part.len() as u64;
            }
            let _ = connection.accept().await;
            Ok::<_, anyhow::Error>(total)
        })
    });
    let tls = s2n_quic::provider::tls::default::Client::builder()
        .with_certificate(certificate.to_vec())
        .map_err(|error| anyhow::anyhow!("{error}"))?
        .build()
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    runtime()?.block_on(async {
        let client = s2n_quic::Client::builder()
            .with_tls(tls)?
            .with_io(io(packet + 28)?)?
            .with_limits(limits()?)?
            .start()
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        let connect = s2n_quic::client::Connect::new(address).with_server_name("localhost");
        let mut connection = client.connect(connect).await?;
        let mut stream = connection.open_send_stream().await?;
        let part = bytes::Bytes::from(vec![7; WRITE_BYTES]);
        for _ in 0..bytes / WRITE_BYTES as u64 {
            stream.send(part.clone()).await?;
        }
        stream.finish()?;
        stream.close().await?;
        connection.close(0u32.into());
        Ok::<_, anyhow::Error>(())
    })?;
    anyhow::ensure!(reader.join().expect("a thread")? == bytes);
    Ok(())
}
