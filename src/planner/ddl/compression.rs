//! The compression options. Our engines compress as they are configured; what is given is checked, kept and shown.

use std::collections::BTreeMap;

use super::error::{DdlError, configuration};
use crate::schema::COMPRESSION_PACKAGE;
use crate::types::java_f64;

type Options = BTreeMap<String, String>;

/// The least and the greatest level of zstd.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;

/// The options with the class's full name and the chunk length that there is without one.
pub(super) fn read(mut options: Options) -> Result<Options, DdlError> {
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
            Err(configuration!(
                "If the 'enabled' option is set to false no other options must be specified"
            ))
        };
    }
    let Some(class) = options.remove("class") else {
        return Err(configuration!(
            "Missing sub-option 'class' for the 'compression' option."
        ));
    };
    if class.is_empty() {
        return Err(configuration!(
            "The 'class' option must not be empty. To disable compression use 'enabled' : false"
        ));
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
        _ => return Err(configuration!("Could not create Compression for type {full}")),
    };
    let length = options.remove("chunk_length_in_kb");
    let ratio = options.remove("min_compress_ratio");
    let unknown: Vec<&str> = options
        .keys()
        .map(String::as_str)
        .filter(|name| !own.contains(name))
        .collect();
    if !unknown.is_empty() {
        return Err(configuration!("Unknown compression options {}", unknown.join(", ")));
    }
    of_compressor(&options)?;
    options.insert("chunk_length_in_kb".to_owned(), chunk_length(length)?);
    if let Some(ratio) = min_ratio(ratio)? {
        options.insert("min_compress_ratio".to_owned(), ratio);
    }
    options.insert("class".to_owned(), full);
    Ok(options)
}

fn of_compressor(options: &Options) -> Result<(), DdlError> {
    if let Some(kind) = options.get("lz4_compressor_type")
        && !matches!(kind.as_str(), "fast" | "high")
    {
        return Err(configuration!(
            "Invalid compressor type '{kind}' specified for LZ4 parameter 'lz4_compressor_type'. \
             Valid options are [high, fast]."
        ));
    }
    if let Some(level) = options.get("compression_level")
        && !level.parse::<i32>().is_ok_and(|level| ZSTD_LEVELS.contains(&level))
    {
        return Err(configuration!(
            "ZstdCompressor.create() threw an error: java.lang.IllegalArgumentException compression_level={level} is invalid"
        ));
    }
    Ok(())
}

fn chunk_length(given: Option<String>) -> Result<String, DdlError> {
    let Some(given) = given else { return Ok("16".to_owned()) };
    match given.parse::<i32>() {
        Err(_) => Err(configuration!("Invalid value for chunk_length_in_kb")),
        Ok(length) if length <= 0 => Err(configuration!("Invalid negative or null chunk_length_in_kb")),
        Ok(length) if length.count_ones() != 1 => Err(configuration!("chunk_length_in_kb must be a power of 2")),
        Ok(length) => Ok(length.to_string()),
    }
}

/// `None`: no ratio, which is 0.
fn min_ratio(given: Option<String>) -> Result<Option<String>, DdlError> {
    let Some(given) = given else { return Ok(None) };
    match given.parse::<f64>() {
        Err(_) => Err(configuration!("Invalid value for min_compress_ratio")),
        Ok(0.0) => Ok(None),
        Ok(ratio) if ratio < 1.0 => Err(configuration!(
            "min_compress_ratio can either be 0 or greater than or equal to 1"
        )),
        Ok(ratio) => Ok(Some(java_f64(ratio))),
    }
}
