//! Pages of documents as images, for people who look at them.

use shelf_base::CallContext;
use shelf_reading::{CutError, DrawError, DrawnPage, PAGE_WIDTH};

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
        let program = self.options.page_program.as_deref();
        match shelf_reading::draw_page(&bytes, (page, width), program, call) {
            Ok(DrawnPage { png, width, height }) => Ok(PageImage { png, width, height }),
            Err(error) => Err(not_drawn(page, &error)),
        }
    }
}

/// What a caller is told of a page that was not drawn.
fn not_drawn(page: u32, error: &DrawError) -> Error {
    match error {
        DrawError::Cut(CutError::NoPage { count, .. }) => {
            Error::invalid("page", format!("must be from 1 to {count}, the number of pages; it is {page}"))
        }
        DrawError::Cut(CutError::Unreadable(error)) => {
            Error::invalid(format!("page {page}"), format!("cannot be drawn: {error}"))
        }
        // The same for everybody who asks, however often.
        DrawError::TooSlow { .. } | DrawError::TooMuch { .. } => Error::invalid(
            format!("page {page}"),
            format!("cannot be drawn: {error}; read its text instead, or open the document itself"),
        ),
        DrawError::Stopped(stopped) => Error::Stopped(*stopped),
        DrawError::Busy | DrawError::Stuck => {
            Error::Busy(format!("page {page} was not drawn: {error}; try again in a moment"))
        }
    }
}

#[cfg(test)]
mod tests {
    use shelf_base::{ErrorInfo, Kind};
    use shelf_reading::Unreadable;

    use super::*;

    #[test]
    fn callers_are_told_what_to_do() {
        let check = |error: DrawError, kind: Kind, text: &str| {
            let told = not_drawn(7, &error);
            assert_eq!((told.kind(), told.to_string().as_str()), (kind, text));
        };
        check(
            CutError::NoPage { page: 7, count: 3 }.into(),
            Kind::Invalid,
            "page must be from 1 to 3, the number of pages; it is 7",
        );
        let encrypted = CutError::from(Unreadable::Encrypted);
        check(encrypted.into(), Kind::Invalid, "page 7 cannot be drawn: the document is encrypted");
        check(
            DrawError::TooSlow { seconds: 20 },
            Kind::Invalid,
            "page 7 cannot be drawn: drawing it takes longer than 20 s; read its text instead, or open the document itself",
        );
        check(
            DrawError::TooMuch { mebibytes: 512 },
            Kind::Invalid,
            "page 7 cannot be drawn: drawing it takes more memory than 512 MiB; read its text instead, or open the document itself",
        );
        check(
            DrawError::Busy,
            Kind::Busy,
            "page 7 was not drawn: too many other pages are being drawn; try again in a moment",
        );
        check(
            DrawError::Stuck,
            Kind::Busy,
            "page 7 was not drawn: pages that take too long are still being drawn; try again in a moment",
        );
    }
}
