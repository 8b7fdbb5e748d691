//! Pages of documents as images, for people who look at them.

use shelf_base::CallContext;
use shelf_reading::{CutError, DrawnPage, PAGE_WIDTH};

use crate::{Caller, Error, Library, Result, look::one_version, readings::EXTRACTED_BYTES};

/// An image of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageImage {
    /// The image, as PNG.
    pub png: Vec<u8>,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

impl Library {
    /// One page of a PDF document, or of the version with this hash, about `width` pixels wide.
    pub fn page_image(
        &self,
        caller: &Caller,
        (id, hash): (&str, Option<&str>),
        (page, width): (u32, u32),
        call: &CallContext,
    ) -> Result<PageImage> {
        let found = self.describe(caller, id)?;
        if found.document.mime != "application/pdf" {
            let expected = "must be a PDF document: other documents have no pages that can be drawn";
            return Err(Error::invalid("document_id", expected));
        }
        if !PAGE_WIDTH.contains(&width) {
            let (least, most) = (PAGE_WIDTH.start(), PAGE_WIDTH.end());
            return Err(Error::invalid("width", format!("must be from {least} to {most} pixels")));
        }
        let version = one_version(&found.document, found.versions, hash)?;
        if version.size > EXTRACTED_BYTES {
            let limit = format!("{} MiB", EXTRACTED_BYTES >> 20);
            return Err(Error::TooLarge { what: found.document.path, limit });
        }
        let _share = self.budget.take(version.size, call)?;
        let bytes = self.blobs.read_blob(call, &version.hash)?;
        // Drawing can take a while: whoever reads in the meantime should not have to wait for it.
        call.step_aside();
        match shelf_reading::draw_page(&bytes, page, width) {
            Ok(DrawnPage { png, width, height }) => Ok(PageImage { png, width, height }),
            Err(error @ CutError::NoPage { .. }) => Err(Error::invalid("page", error.to_string())),
            Err(CutError::Unreadable(error)) => {
                Err(Error::invalid("the page", format!("cannot be drawn: {error}")))
            }
        }
    }
}
