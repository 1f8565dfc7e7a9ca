//! `network`: HTTPS requests of Python through the proxy of a cell, beside the same program without a
//! proxy, through tinyproxy and in the sandbox of srt.
//!
//! Client and server are the same in every case; the client itself takes the times. All of it happens
//! on `lo`, so a difference between two cases is the cost of the proxy. CPU time is that of the client
//! and of the proxy together, without the server's.

mod https_server;
mod proxies;

use std::time::Duration;

use anyhow::Context as _;
use belljar_contract::{Language, RunRequest};

use super::{
    Bench, expect_value, host_cases::HostCases, python_peer::PythonPeer, rounds, row::BenchRow,
    stats::Times,
};
use https_server::HttpsServer;
use proxies::{BelljarClient, ClientFigures, NetworkClient, OutsideClient, SrtClient, TinyProxy};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Cases take turns, so that a busy moment of the machine affects all of them.
const ROUNDS: u32 = 5;
/// Bytes of the large body, all rounds together: 1 GB with the usual number of runs.
const BYTES_PER_RUN: u64 = 2_000_000;
const GIGABYTE: f64 = 1e9;
const CODE: &str = "1+1";
/// Long enough for the host to remove the used cell and park another one.
const REST: Duration = Duration::from_millis(15);

/// One way to the server.
struct ClientCase<'a> {
    name: &'static str,
    version: String,
    client: Box<dyn NetworkClient + 'a>,
    fresh: Times,
    reused: Times,
    large: Times,
    cpu: Times,
}

/// Measures requests, then the start of a cell that is granted a host.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let Some(python) = PythonPeer::of(bench) else { return Ok(Vec::new()) };
    let server = HttpsServer::start(bench, &python).context("cannot start the server")?;
    let tinyproxy = bench.peers.tinyproxy.as_ref();
    let proxy = tinyproxy.map(|peer| TinyProxy::start(bench, &peer.program)).transpose()?;
    let mut cases = vec![
        ClientCase::new("belljar, tunnel", VERSION, BelljarClient::tunnel(bench, &server)?),
        ClientCase::new("belljar, TLS ended", VERSION, BelljarClient::seeing(bench, &server)?),
        ClientCase::new("direct", &python.version, OutsideClient::direct(&python, &server)),
    ];
    match &proxy {
        Some(proxy) => {
            let version = tinyproxy.map_or("", |peer| &peer.version);
            cases.push(ClientCase::new("tinyproxy", version, proxy.client(&python, &server)));
        }
        None => bench.omissions.missing("tinyproxy"),
    }
    match &bench.peers.srt {
        Some(peer) => {
            let client = SrtClient::new(bench, peer, &python, &server)?;
            cases.push(ClientCase::new("srt", &peer.version, client));
        }
        None => bench.omissions.missing("srt"),
    }
    let requests = (2 * bench.arguments.n).div_ceil(ROUNDS);
    let bytes = BYTES_PER_RUN * u64::from(bench.arguments.n) / u64::from(ROUNDS);
    for round in 0..ROUNDS {
        for case in &mut cases {
            bench.progress.show(&format!(
                "network: {}, round {} of {ROUNDS}",
                case.name,
                round + 1
            ));
            case.round(requests, bytes).context(case.name)?;
        }
    }
    let row = |name, times: for<'a> fn(&'a ClientCase<'_>) -> &'a Times| {
        let rows = cases.iter().filter(|case| times(case).count() > 0);
        rows.map(move |case| BenchRow::timed(name, case.name, &case.version, times(case)))
            .collect::<Vec<_>>()
    };
    let mut rows = row("network, new connection", |case| &case.fresh);
    rows.extend(row("network, same connection", |case| &case.reused));
    rows.extend(row("network, time per GB", |case| &case.large));
    rows.extend(row("network, CPU time per GB", |case| &case.cpu));
    rows.extend(starts(bench)?);
    Ok(rows)
}

/// The start of a cell with and without a host.
fn starts(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let plain = RunRequest::new(Language::Python, CODE);
    let mut granted = plain.clone();
    granted.grants.net = vec!["example.org".to_owned()];
    let cases = [("belljar python, a host granted", granted), ("belljar python", plain)];
    let hosts = cases.into_iter().map(|(name, request)| {
        Ok((name, HostCases::new(request, REST, |result| expect_value(result, "2"))?))
    });
    let hosts = hosts.collect::<anyhow::Result<Vec<_>>>()?;
    let timed = hosts.iter().flat_map(|(name, host)| host.cases(name)).collect();
    let rows = rounds::measure(bench, "network, start", timed)?;
    hosts.into_iter().for_each(|(_, host)| host.end());
    Ok(rows)
}

impl<'a> ClientCase<'a> {
    fn new(name: &'static str, version: &str, client: impl NetworkClient + 'a) -> Self {
        let (fresh, reused, large, cpu) = Default::default();
        let (version, client) = (version.to_owned(), Box::new(client));
        Self { name, version, client, fresh, reused, large, cpu }
    }

    /// Requests first, then the large body, whose CPU time is what it takes more than nothing.
    fn round(&mut self, requests: u32, bytes: u64) -> anyhow::Result<()> {
        let ClientFigures { fresh, reused, .. } = self.client.run(requests, 0)?;
        fresh.into_iter().for_each(|time| self.fresh.add_ms(time));
        reused.into_iter().for_each(|time| self.reused.add_ms(time));
        let (idle, loaded) = (self.client.run(0, 0)?, self.client.run(0, bytes)?);
        let per_gigabyte = GIGABYTE / bytes as f64;
        self.large.add_ms(loaded.large * per_gigabyte);
        self.cpu.add_ms((loaded.cpu_ms - idle.cpu_ms) * per_gigabyte);
        Ok(())
    }
}
