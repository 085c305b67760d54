//! Messages over quinn with BBR.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

fn transport() -> Arc<quinn::TransportConfig> {
    let mut transport = quinn::TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(quinn::congestion::BbrConfig::default()));
    transport.stream_receive_window((64u32 << 20).into()).receive_window((128u32 << 20).into()).send_window(64 << 20);
    transport.max_concurrent_uni_streams(1_000u32.into()).keep_alive_interval(Some(Duration::from_secs(1)));
    Arc::new(transport)
}

/// Receives the messages of one client.
pub fn listen(address: SocketAddr, file: &str) -> Result<()> {
    let (certificate, key) = super::certificate()?;
    let mut server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
    server.transport_config(transport());
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let endpoint = quinn::Endpoint::server(server, address)?;
        std::fs::write(file, certificate)?;
        let connection = endpoint.accept().await.context("no client")?.await?;
        while let Ok(mut stream) = connection.accept_uni().await {
            while stream.read_chunk(1 << 20, true).await?.is_some() {}
        }
        Ok(())
    })
}

/// Sends `count` messages, one after the other, with a pause of four round trips between them.
pub fn send(address: SocketAddr, file: &str, bytes: usize, count: usize) -> Result<()> {
    let mut roots = rustls::RootCertStore::empty();
    let began = Instant::now();
    while !std::path::Path::new(file).exists() && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    roots.add(std::fs::read(file)?.into())?;
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport());
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut endpoint = quinn::Endpoint::client(SocketAddr::new([0, 0, 0, 0].into(), 0))?;
        endpoint.set_default_client_config(client);
        let connection = endpoint.connect(address, "localhost")?.await?;
        let (data, mut durations) = (vec![7; bytes], Vec::new());
        for _ in 0..count {
            let began = Instant::now();
            let mut stream = connection.open_uni().await?;
            stream.write_all(&data).await?;
            stream.finish()?;
            stream.stopped().await?;
            durations.push(began.elapsed());
            tokio::time::sleep(connection.rtt() * 4).await;
        }
        durations.sort_unstable();
        let percentile = |percent: usize| durations[(durations.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        println!("{count} messages of {bytes} bytes: p50 {:.1} ms, p99 {:.1} ms", percentile(50), percentile(99));
        connection.close(0u32.into(), b"");
        endpoint.wait_idle().await;
        Ok(())
    })
}
