//! Images: their size, and parts of them.
//!
//! A part is written as PNG, which loses nothing: its pixels are those of the image as it is shown, turned as the camera
//! noted, with the same colour profile.

use std::io::Cursor;

use image::{
    DynamicImage, ImageDecoder, ImageEncoder, ImageReader, Limits, codecs::png::PngEncoder,
    metadata::Orientation,
};
use shelf_base::address::Region;

use crate::Unreadable;

/// Pixels in one direction at most.
const MOST_SIDE: u32 = 50_000;
/// Bytes of an unpacked image at most.
const MOST_BYTES: u64 = 512 << 20;

/// Width and height of an image as it is shown, in pixels.
pub fn image_size(bytes: &[u8]) -> Result<(u32, u32), Unreadable> {
    crate::text::contained(|| {
        let mut decoder = decoder(bytes)?;
        let (width, height) = decoder.dimensions();
        let is_turned = matches!(
            decoder.orientation().unwrap_or(Orientation::NoTransforms),
            Orientation::Rotate90
                | Orientation::Rotate270
                | Orientation::Rotate90FlipH
                | Orientation::Rotate270FlipH
        );
        Ok(if is_turned { (height, width) } else { (width, height) })
    })
}

/// A part of an image, as PNG. Every pixel that the region touches is in it.
pub fn crop(bytes: &[u8], region: Region) -> Result<Vec<u8>, Unreadable> {
    crate::text::contained(|| {
        let mut decoder = decoder(bytes)?;
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let profile = decoder.icc_profile().ok().flatten();
        let mut image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
        image.apply_orientation(orientation);
        let [x1, y1, x2, y2] = region.millionths().map(u64::from);
        let (width, height) = (u64::from(image.width()), u64::from(image.height()));
        let first = |part: u64, size: u64| (part * size / 1_000_000).min(size - 1);
        let last = |part: u64, size: u64| (part * size).div_ceil(1_000_000).clamp(1, size);
        let (left, top) = (first(x1, width), first(y1, height));
        let (right, bottom) = (last(x2, width).max(left + 1), last(y2, height).max(top + 1));
        let part = image.crop_imm(left as u32, top as u32, (right - left) as u32, (bottom - top) as u32);
        let mut out = Vec::new();
        let mut encoder = PngEncoder::new(&mut out);
        if let Some(profile) = profile {
            // A profile that PNG cannot hold is left out; the pixels are the same.
            let _ = encoder.set_icc_profile(profile);
        }
        part.write_with_encoder(encoder).map_err(damaged)?;
        Ok(out)
    })
}

fn decoder(bytes: &[u8]) -> Result<impl ImageDecoder + '_, Unreadable> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| Unreadable::damaged(error.to_string()))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MOST_SIDE);
    limits.max_image_height = Some(MOST_SIDE);
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(Unreadable::damaged("the image is empty"));
    }
    if decoder.total_bytes() > MOST_BYTES {
        return Err(Unreadable::TooLarge { what: "unpacked bytes", limit: MOST_BYTES });
    }
    Ok(decoder)
}

fn damaged(error: image::ImageError) -> Unreadable {
    match error {
        image::ImageError::Limits(_) => Unreadable::TooLarge { what: "unpacked bytes", limit: MOST_BYTES },
        error => Unreadable::damaged(error.to_string()),
    }
}
