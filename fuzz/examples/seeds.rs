//! Writes the seeds to `corpus/`: `cargo run --example seeds`, in this directory.

fn main() -> std::io::Result<()> {
    for seed in grainstore_fuzz::seeds::seeds() {
        let directory = std::path::Path::new("corpus").join(seed.target);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(format!("{}.bin", seed.name)), seed.bytes)?;
    }
    Ok(())
}
