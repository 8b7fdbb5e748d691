//! A corpus of one large binary file: half random noise, half records, similar to images and databases.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::random::Random;
use super::{Scale, corpus};

/// The size of the file at full scale, in bytes.
const SIZE: usize = 1_000_000_000;

/// The number of bytes generated at once.
const PIECE: usize = 1_000_000;

const SEED: u64 = 0x5eed_0003;

/// Creates the file unless it exists, and returns its folder.
pub fn ensure(work: &Path, scale: Scale) -> Result<PathBuf> {
    let size = scale.of(SIZE);
    corpus::ensure(work, "binary", &format!("{size} {SEED}"), |folder| make(&folder.join("image.bin"), size))
}

fn make(place: &Path, size: usize) -> Result<()> {
    let mut random = Random::new(SEED);
    let mut output = BufWriter::with_capacity(PIECE, File::create(place)?);
    let mut piece = vec![0; PIECE];
    let pieces = size / PIECE;
    for _ in 0..pieces / 2 {
        random.fill(&mut piece);
        output.write_all(&piece)?;
    }
    let mut records = Records { random, serial: 0, measure: 20_000 };
    for _ in pieces / 2..pieces {
        records.fill(&mut piece);
        output.write_all(&piece)?;
    }
    output.flush()?;
    Ok(())
}

/// The size of each of the two files of structured data at full scale, in bytes.
const STRUCTURED: usize = 512 << 20;

/// Creates a folder with a file of records that repeat over long distances and a file of noise, and returns it.
pub fn ensure_structured(work: &Path, scale: Scale) -> Result<PathBuf> {
    let size = scale.of(STRUCTURED).max(32 << 20);
    corpus::ensure(work, "structured", &format!("{size} {SEED}"), |folder| {
        let mut random = Random::new(SEED);
        let mut noise = BufWriter::with_capacity(PIECE, File::create(folder.join("noise.bin"))?);
        let mut piece = vec![0; PIECE];
        for _ in 0..size / PIECE {
            random.fill(&mut piece);
            noise.write_all(&piece)?;
        }
        noise.flush()?;
        let mut payloads = vec![[0; 96]; 2_000];
        payloads.iter_mut().for_each(|payload| random.fill(payload));
        let mut records = BufWriter::with_capacity(PIECE, File::create(folder.join("records.bin"))?);
        for serial in 0..size / 112 {
            records.write_all(&(serial as u128).to_le_bytes())?;
            records.write_all(&payloads[random.below(payloads.len())])?;
        }
        Ok(records.flush()?)
    })
}

/// Fixed-width records: a counter, a slowly changing value, a small code, a padded label, and some noise.
struct Records {
    random: Random,
    serial: u64,
    measure: i32,
}

impl Records {
    const WIDTH: usize = 40;
    const LABELS: [&[u8; 12]; 4] =
        [b"temperature\0", b"pressure\0\0\0\0", b"humidity\0\0\0\0", b"voltage\0\0\0\0\0"];

    fn fill(&mut self, piece: &mut [u8]) {
        for record in piece.chunks_mut(Self::WIDTH) {
            let bytes = self.record();
            record.copy_from_slice(&bytes[..record.len()]);
        }
    }

    fn record(&mut self) -> [u8; Self::WIDTH] {
        self.serial += 1;
        let noise = self.random.bits();
        self.measure += (noise % 17) as i32 - 8;
        let label = Self::LABELS[(noise >> 8) as usize % Self::LABELS.len()];
        let mut record = [0; Self::WIDTH];
        record[..8].copy_from_slice(&self.serial.to_le_bytes());
        record[8..12].copy_from_slice(&self.measure.to_le_bytes());
        record[12] = (noise >> 16) as u8 & 7;
        record[16..28].copy_from_slice(label);
        record[28..32].copy_from_slice(&(noise as u32).to_le_bytes());
        record
    }
}
