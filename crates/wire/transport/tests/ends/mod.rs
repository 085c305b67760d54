//! Setup of tests of two ends on one machine.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use laws::{Law, NewReno, PathInfo, newreno};
use proto::service::Service;
use proto::settings::Settings;
use testing::{DEFAULT_TIMEOUT, block_on};
use transport::{Config, Endpoint};

pub(crate) fn config(paths: u8) -> Config {
    let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
    let mut settings = Settings::new(Service::named("test"), Arc::new(law));
    settings.paths = paths;
    Config::new(settings).unwrap()
}

/// Any free port of the loopback.
pub(crate) fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn listen(config: &Config) -> Endpoint {
    Endpoint::listen(anywhere(), config).unwrap()
}

pub(crate) fn client(config: &Config) -> Endpoint {
    Endpoint::client(anywhere(), config).unwrap()
}

/// Runs a future of a test to its end. Waits on other threads have the same time limit.
#[track_caller]
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    block_on(DEFAULT_TIMEOUT, "both ends finish this part of the test", future)
}
