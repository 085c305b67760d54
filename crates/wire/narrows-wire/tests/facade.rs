//! A program that depends on this crate alone transfers data: by the example, and by tokio's traits.

use std::fs;
use std::path::PathBuf;
use std::thread;

use narrows_wire::{CloseCode, Connection, Endpoint, Law, RecvStream, SendStream, Service, Trust, config};
use testing::{DEFAULT_TIMEOUT, block_on};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};

#[allow(dead_code)] // The `main` function is part of the program.
#[path = "../examples/copy.rs"]
mod example;

fn test_dir(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("wire-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_example_copies_a_file() {
    let folder = test_dir("copy");
    let (from, to) = (folder.join("from"), folder.join("to"));
    let content: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&from, &content).unwrap();
    let config = config(Service::named("copy"), Law::Bbr).unwrap();
    let listener = Endpoint::listen("127.0.0.1:0".parse().unwrap(), &config).unwrap();
    let address = listener.address();
    let fingerprint = config.identity.fingerprint();
    thread::scope(|scope| {
        let serving = scope.spawn(|| example::serve(&listener, from.to_str().unwrap()));
        let fetched = example::fetch(address, fingerprint, to.to_str().unwrap());
        assert_eq!(fetched.map_err(|error| error.to_string()), Ok(content.len() as u64));
        // An existing file is kept, and the server continues.
        assert!(example::fetch(address, fingerprint, to.to_str().unwrap()).is_err());
        assert!(example::fetch(address, fingerprint, folder.join("other").to_str().unwrap()).is_ok());
        listener.close(CloseCode::NONE, "");
        serving.join().unwrap();
    });
    assert!(fs::read(&to).unwrap() == content);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_example_is_short_and_uses_one_crate() {
    let text = include_str!("../examples/copy.rs");
    assert!(text.lines().count() <= 60, "{} lines", text.lines().count());
    let used: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("use ")).collect();
    assert!(used.iter().all(|used| used.starts_with("std::") || used.starts_with("narrows_wire::")), "{used:?}");
    for panics in ["unwrap", "expect(", "panic!"] {
        assert!(!text.contains(panics) && !include_str!("../README.md").contains(panics), "{panics}");
    }
}

/// Two ends of a connection in this process.
fn pair() -> (Endpoint, Endpoint, Connection, Connection) {
    let config = config(Service::named("pair"), Law::NewReno).unwrap();
    let listener = Endpoint::listen("127.0.0.1:0".parse().unwrap(), &config).unwrap();
    let client = Endpoint::client("127.0.0.1:0".parse().unwrap(), &config).unwrap();
    let trust = Trust::Fingerprint(config.identity.fingerprint());
    let address = listener.address();
    let (client_end, listener_end) = thread::scope(|scope| {
        let listener_end =
            scope.spawn(|| block_on(DEFAULT_TIMEOUT, "a client", listener.accept()).unwrap().admit().unwrap());
        (
            block_on(DEFAULT_TIMEOUT, "a connection", client.connect(address, trust, None)).unwrap(),
            listener_end.join().unwrap(),
        )
    });
    (listener, client, client_end, listener_end)
}

/// Bytes go through `tokio::io::copy` in both directions; shutting down ends a stream.
#[test]
fn streams_are_async_readers_and_writers() {
    let (_listener, _client, client_end, listener_end) = pair();
    let data: Vec<u8> = (0..500_000u32).flat_map(u32::to_le_bytes).collect();
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            block_on(DEFAULT_TIMEOUT, "the echo", async {
                let both = listener_end.accept_stream().await.unwrap();
                let (mut send, mut receive): (SendStream, RecvStream) = (both.send.unwrap(), both.receive);
                let copied = copy(&mut receive, &mut send).await.unwrap();
                send.shutdown().await.unwrap();
                send.delivered().await.unwrap();
                copied
            })
        });
        let back = block_on(DEFAULT_TIMEOUT, "all bytes back", async {
            let (mut send, mut receive) = client_end.open().await.unwrap();
            let reading = async {
                let mut back = Vec::new();
                AsyncReadExt::read_to_end(&mut receive, &mut back).await.map(|_| back)
            };
            let writing = async {
                AsyncWriteExt::write_all(&mut send, &data).await?;
                send.flush().await?;
                send.shutdown().await
            };
            let (back, written) = tokio::join!(reading, writing);
            written.unwrap();
            // Nothing can be written after the end.
            assert!(AsyncWriteExt::write_all(&mut send, b"more").await.is_err());
            back.unwrap()
        });
        assert_eq!(echo.join().unwrap(), data.len() as u64);
        assert!(back == data);
    });
}
