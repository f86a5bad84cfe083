//! The compression options. Our engines have their own compression settings; the options are validated, kept and shown.

use std::collections::BTreeMap;

use super::refusal::CompressionRefusal;
use crate::planner::text::owned;
use crate::schema::COMPRESSION_PACKAGE;
use helenus_types::types::java_f64;

type Options = BTreeMap<String, String>;

/// The least and the greatest level of zstd.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;

/// Normalises options: the class's full name, and the default chunk length.
pub(super) fn read(mut options: Options) -> Result<Options, CompressionRefusal> {
    let off = Options::from([("enabled".to_owned(), "false".to_owned())]);
    if options.is_empty() {
        return Ok(off);
    }
    if let Some(enabled) = options.remove("enabled")
        && !enabled.eq_ignore_ascii_case("true")
    {
        return if options.is_empty() {
            Ok(off)
        } else {
            Err(CompressionRefusal::OffWithOptions)
        };
    }
    let Some(class) = options.remove("class") else {
        return Err(CompressionRefusal::ClassMissing);
    };
    if class.is_empty() {
        return Err(CompressionRefusal::ClassEmpty);
    }
    let full = if class.contains('.') {
        class
    } else {
        format!("{COMPRESSION_PACKAGE}{class}")
    };
    let own: &[&str] = match full.strip_prefix(COMPRESSION_PACKAGE) {
        Some("LZ4Compressor") => &["lz4_compressor_type", "lz4_high_compressor_level"],
        Some("ZstdCompressor") => &["compression_level"],
        Some("SnappyCompressor" | "DeflateCompressor" | "NoopCompressor") => &[],
        _ => return Err(CompressionRefusal::UnknownClass(full)),
    };
    let length = options.remove("chunk_length_in_kb");
    let ratio = options.remove("min_compress_ratio");
    let unknown: Vec<&str> = options
        .keys()
        .map(String::as_str)
        .filter(|name| !own.contains(name))
        .collect();
    if !unknown.is_empty() {
        return Err(CompressionRefusal::Unknown(owned(unknown)));
    }
    of_compressor(&options)?;
    options.insert("chunk_length_in_kb".to_owned(), chunk_length(length)?);
    if let Some(ratio) = min_ratio(ratio)? {
        options.insert("min_compress_ratio".to_owned(), ratio);
    }
    options.insert("class".to_owned(), full);
    Ok(options)
}

fn of_compressor(options: &Options) -> Result<(), CompressionRefusal> {
    if let Some(kind) = options.get("lz4_compressor_type")
        && !matches!(kind.as_str(), "fast" | "high")
    {
        return Err(CompressionRefusal::Lz4Kind(kind.clone()));
    }
    if let Some(level) = options.get("compression_level")
        && !level.parse::<i32>().is_ok_and(|level| ZSTD_LEVELS.contains(&level))
    {
        return Err(CompressionRefusal::ZstdLevel(level.clone()));
    }
    Ok(())
}

fn chunk_length(given: Option<String>) -> Result<String, CompressionRefusal> {
    let Some(given) = given else { return Ok("16".to_owned()) };
    match given.parse::<i32>() {
        Err(_) => Err(CompressionRefusal::ChunkLengthText),
        Ok(length) if length <= 0 => Err(CompressionRefusal::ChunkLengthSign),
        Ok(length) if length.count_ones() != 1 => Err(CompressionRefusal::ChunkLengthPower),
        Ok(length) => Ok(length.to_string()),
    }
}

/// Validates the minimum compression ratio; `None` means no minimum, which is 0.
fn min_ratio(given: Option<String>) -> Result<Option<String>, CompressionRefusal> {
    let Some(given) = given else { return Ok(None) };
    match given.parse::<f64>() {
        Err(_) => Err(CompressionRefusal::RatioText),
        Ok(0.0) => Ok(None),
        Ok(ratio) if ratio < 1.0 => Err(CompressionRefusal::Ratio),
        Ok(ratio) => Ok(Some(java_f64(ratio))),
    }
}
