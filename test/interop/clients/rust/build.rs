//! Hands the program the version of rskafka that Cargo.lock holds, so that it reports what it really runs.

fn main() {
    println!("cargo:rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock");
    let after = lock.split("name = \"rskafka\"\nversion = \"").nth(1).expect("rskafka in Cargo.lock");
    println!("cargo:rustc-env=RSKAFKA_VERSION={}", after.split('"').next().expect("a version"));
}
