//! Walks rskafka through the steps of ../../steps/doc.go. rskafka has no consumer groups; offsets are the program's own.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::{Record, RecordAndOffset};
use rustls::pki_types::{pem::PemObject, CertificateDer};
use rustls::{ClientConfig, RootCertStore};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CODECS: [(&str, Compression); 5] = [
    ("none", Compression::NoCompression),
    ("gzip", Compression::Gzip),
    ("snappy", Compression::Snappy),
    ("lz4", Compression::Lz4),
    ("zstd", Compression::Zstd),
];
const NO_GROUPS: &str = "rskafka has no consumer groups";
const LIST_TIME_MAX: Duration = Duration::from_secs(5);
const STEP_TIME_MAX: Duration = Duration::from_secs(60);

/// Prints one step's line; the result is false when it failed.
async fn report(name: &str, step: impl Future<Output = Outcome<()>>) -> bool {
    let outcome = match tokio::time::timeout(STEP_TIME_MAX, step).await {
        Ok(done) => done,
        Err(_) => Err("timed out".into()),
    };
    match outcome {
        Ok(()) => {
            println!("step {name} ok");
            true
        }
        Err(e) => {
            println!("step {name} FAIL {}", e.to_string().replace('\n', " "));
            false
        }
    }
}

fn lacks(name: &str, why: &str) {
    println!("step {name} not-offered {why}");
}

fn record(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&str, &[u8])], at: DateTime<Utc>) -> Record {
    Record {
        key: key.map(<[u8]>::to_vec),
        value: value.map(<[u8]>::to_vec),
        headers: headers.iter().map(|(k, v)| (k.to_string(), v.to_vec())).collect::<BTreeMap<_, _>>(),
        timestamp: at,
    }
}

/// The records of steps.Samples, as far as a map of headers with values can hold them.
fn samples() -> Vec<Record> {
    let at = Utc.timestamp_millis_opt(Utc::now().timestamp_millis()).unwrap();
    let large = b"0123456789abcdef".repeat(4096);
    vec![
        record(Some(b"k"), Some(b"v"), &[], at),
        record(None, Some(b"v"), &[], at),
        record(Some(b""), Some(b"v"), &[], at),
        record(Some(b"k"), None, &[], at),
        record(Some(b"k"), Some(b""), &[], at),
        record(Some(b"k"), Some(b"v"), &[("a", b"1"), ("null", b""), ("empty", b"")], at),
        record(Some(&[0, 255, 10]), Some(&[0xff, 0xfe, 0, b'\n', b':']), &[("b", &[1, 2, 255])], at),
        record(Some(b"k"), Some(&large), &[], at),
    ]
}

async fn partition(client: &Client, topic: &str, partition: i32) -> Outcome<PartitionClient> {
    Ok(client.partition_client(topic, partition, UnknownTopicHandling::Retry).await?)
}

async fn read(p: &PartitionClient, from: i64, n: usize) -> Outcome<Vec<RecordAndOffset>> {
    let mut out: Vec<RecordAndOffset> = vec![];
    while out.len() < n {
        let next = out.last().map_or(from, |r| r.offset + 1);
        let (got, _) = p.fetch_records(next, 1..10_000_000, 500).await?;
        out.extend(got.into_iter().filter(|r| r.offset >= next));
    }
    Ok(out)
}

fn topics() -> Vec<(String, i32)> {
    let mut out = vec![("orders".to_string(), 2), ("times".to_string(), 1)];
    out.extend(CODECS.iter().map(|(name, _)| (format!("codec-{name}"), 1)));
    out
}

async fn listed(client: &Client) -> Outcome<usize> {
    let names: Vec<String> = client.list_topics().await?.into_iter().map(|t| t.name).collect();
    Ok(topics().iter().filter(|(name, _)| names.contains(name)).count())
}

// Of several brokers one may hear of a change some milliseconds after another one has answered it.
async fn wait_listed(client: &Client, want: usize) -> Outcome<()> {
    let end = tokio::time::Instant::now() + LIST_TIME_MAX;
    loop {
        match listed(client).await? {
            n if n == want => return Ok(()),
            n if tokio::time::Instant::now() > end => return Err(format!("{n} topics are listed, want {want}").into()),
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn create(client: &Client) -> Outcome<()> {
    let controller = client.controller_client()?;
    let replicas = std::env::var("REPLICAS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for (name, partitions) in topics() {
        controller.create_topic(name, partitions, replicas, 5000).await?;
    }
    wait_listed(client, topics().len()).await
}

async fn codec(client: &Client, name: &str, compression: Compression) -> Outcome<()> {
    let p = partition(client, &format!("codec-{name}"), 0).await?;
    let sent = samples();
    p.produce(sent.clone(), compression).await?;
    let got = read(&p, 0, sent.len()).await?;
    for (i, (want, have)) in sent.iter().zip(&got).enumerate() {
        if have.offset != i as i64 || have.record != *want {
            return Err(format!("record {i} came back different").into());
        }
    }
    Ok(())
}

async fn produce_orders(p: &PartitionClient, range: std::ops::Range<i64>) -> Outcome<()> {
    let rs = range.map(|o| record(Some(b"k"), Some(o.to_string().as_bytes()), &[], Utc::now())).collect();
    p.produce(rs, Compression::NoCompression).await?;
    Ok(())
}

fn restart() -> Outcome<()> {
    println!("RESTART");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if line.trim() == "DONE" { Ok(()) } else { Err(format!("the driver answered {line:?}").into()) }
}

/// Reads 8, lives through kill -9 of the broker, and reads on from there: all, and nothing twice.
async fn kill(client: &Client) -> Outcome<()> {
    let orders = [partition(client, "orders", 0).await?, partition(client, "orders", 1).await?];
    for p in &orders {
        produce_orders(p, 0..10).await?;
        read(p, 0, 8).await?;
    }
    restart()?;
    for p in &orders {
        produce_orders(p, 10..15).await?;
        let got = read(p, 8, 7).await?;
        let values: Vec<String> = got.iter().map(|r| String::from_utf8_lossy(r.record.value.as_deref().unwrap_or(b"")).into_owned()).collect();
        let want: Vec<String> = (8..15).map(|o: i64| o.to_string()).collect();
        if values != want {
            return Err(format!("read {values:?} after the restart").into());
        }
    }
    Ok(())
}

async fn by_time(client: &Client) -> Outcome<()> {
    let p = partition(client, "times", 0).await?;
    let base = Utc.timestamp_millis_opt(Utc::now().timestamp_millis() - 3_600_000).unwrap();
    let second = chrono::Duration::seconds(1);
    p.produce((0..3).map(|i| record(None, Some(b"t"), &[], base + second * i)).collect(), Compression::NoCompression).await?;
    for (at, want) in [(base - second, 0), (base + chrono::Duration::milliseconds(1), 1), (base + second * 2, 2)] {
        let got = p.get_offset(OffsetAt::Timestamp(at)).await?;
        if got != want {
            return Err(format!("offset at {at} is {got}, want {want}").into());
        }
    }
    Ok(())
}

async fn seek(client: &Client) -> Outcome<()> {
    let p = partition(client, "codec-none", 0).await?;
    for to in [6, 3] {
        let first = read(&p, to, 1).await?[0].offset;
        if first != to {
            return Err(format!("reading from {to} began at {first}").into());
        }
    }
    Ok(())
}

async fn delete(client: &Client) -> Outcome<()> {
    let controller = client.controller_client()?;
    for (name, _) in topics() {
        controller.delete_topic(name, 5000).await?;
    }
    wait_listed(client, 0).await
}

/// Adds what a secured broker wants: TLS by its CA, and a login.
fn secured(builder: ClientBuilder) -> ClientBuilder {
    let Ok(ca) = std::env::var("WALK_CA") else { return builder };
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_file_iter(ca).expect("the CA's file") {
        roots.add(cert.expect("a certificate")).expect("a CA");
    }
    let var = |name| std::env::var(name).expect(name);
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    builder
        .tls_config(Arc::new(tls))
        .sasl_config(SaslConfig::ScramSha512(Credentials::new(var("WALK_USER"), var("WALK_PASSWORD"))))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let brokers = std::env::args().nth(1).expect("the brokers' addresses");
    println!("version {}", env!("RSKAFKA_VERSION"));
    let client = secured(ClientBuilder::new(brokers.split(',').map(String::from).collect())).build().await.expect("connect");
    let mut ok = report("create", create(&client)).await;
    let mut codecs = true;
    for (name, compression) in CODECS {
        codecs &= report(name, codec(&client, name, compression)).await;
    }
    // codec() compares null and empty keys and values exactly.
    for name in ["keys", "values"] {
        report(name, async { if codecs { Ok(()) } else { Err("a codec's step failed".into()) } }).await;
    }
    lacks("headers", "rskafka's headers are a map: one value per key");
    lacks("null-headers", "rskafka's header values cannot be null");
    for name in ["group", "commit", "restart-consumer"] {
        lacks(name, NO_GROUPS);
    }
    ok &= report("kill-9", kill(&client)).await;
    ok &= report("by-time", by_time(&client)).await;
    ok &= report("seek", seek(&client)).await;
    for name in ["describe-group", "reset-group", "delete-group"] {
        lacks(name, NO_GROUPS);
    }
    ok &= report("delete-topic", delete(&client)).await;
    std::process::exit(if ok && codecs { 0 } else { 1 });
}
