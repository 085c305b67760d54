//! Copies a file to another machine: `copy serve FILE`, then there `copy fetch ADDRESS FINGERPRINT FILE`.

use std::error::Error;
use std::fs::File;
use std::net::SocketAddr;
use std::time::Instant;
use std::{env, io};

use narrows_wire::{Endpoint, Fingerprint, Incoming, Law, Service, Trust, config, wait};

const COPY: Service = Service::named("copy");

/// Sends the file to one client after the other.
pub(crate) fn serve(listener: &Endpoint, file: &str) {
    while let Some(client) = wait(listener.accept()) {
        if let Err(error) = send(client, file) {
            eprintln!("a client did not get all of {file}: {error}");
        }
    }
}

fn send(client: Incoming, file: &str) -> Result<(), Box<dyn Error>> {
    let connection = client.admit()?;
    let mut stream = wait(connection.open_one_way())?;
    io::copy(&mut File::open(file)?, &mut stream)?;
    stream.finish()?;
    Ok(wait(stream.delivered())?)
}

/// Writes the data that a server sends to a new file. Returns the number of bytes.
pub(crate) fn fetch(address: SocketAddr, server: Fingerprint, file: &str) -> Result<u64, Box<dyn Error>> {
    let client = Endpoint::client("0.0.0.0:0".parse()?, &config(COPY, Law::Bbr)?)?;
    let connection = wait(client.connect(address, Trust::Fingerprint(server), None))?;
    let mut stream = wait(connection.accept_stream())?.receive;
    Ok(io::copy(&mut stream, &mut File::create_new(file)?)?)
}

#[allow(clippy::disallowed_methods)] // An example may take the time.
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", file] => {
            let config = config(COPY, Law::Bbr)?;
            let listener = Endpoint::listen("0.0.0.0:0".parse()?, &config)?;
            println!("copy fetch {} {} FILE", listener.address(), config.identity.fingerprint());
            serve(&listener, file);
            Ok(())
        }
        ["fetch", address, server, file] => {
            let begun = Instant::now();
            let bytes = fetch(address.parse()?, server.parse()?, file)?;
            println!("{bytes} bytes in {:.2?}", begun.elapsed());
            Ok(())
        }
        _ => Err("usage: copy serve FILE, or copy fetch ADDRESS FINGERPRINT FILE".into()),
    }
}
