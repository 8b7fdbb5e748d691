//! Addresses in replies: where an asset, an upload or an archive is to be had.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{Answer, Archive, Asset, BookError, Ticket, assets, exports, full_path};
use crate::{Caller, Library, Result, signing::Purpose};

/// What is written as it is in the path of a URL: letters, digits and `-._~/`.
const KEPT: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'&')
    .add(b'+')
    .add(b';')
    .add(b'=');

/// A path as it stands in a URL.
pub(crate) fn encoded(path: &str) -> String {
    utf8_percent_encode(path, &KEPT).to_string()
}

impl Library {
    /// The address under which this caller reaches the server, if it reaches it by one.
    pub fn address_for(&self, caller: &Caller) -> Option<String> {
        let configured = self.options.links.public_url.clone();
        configured.or_else(|| caller.base_url.as_deref().map(str::to_owned))
    }

    /// Addresses of assets, in their order. Without a server they are files; of a list as many as a budget allows. The others
    /// are at the address that `door` opens on this machine, and files all the same where it opens none.
    pub fn asset_urls(
        &self,
        caller: &Caller,
        assets: &[Asset],
        door: &dyn Fn() -> Result<String, String>,
    ) -> Answer<Vec<String>> {
        let Some(first) = assets.first() else { return Ok(Vec::new()) };
        let failed = |error| BookError::Engine { path: first.full_path(), error };
        if let Some(base) = &self.options.links.cdn_base_url {
            let of_asset = |asset: &Asset| format!("{base}/{}", encoded(&asset.full_path()));
            return Ok(assets.iter().map(of_asset).collect());
        }
        match self.address_for(caller) {
            Some(base) => self.served(caller, &base, assets).map_err(failed),
            None => self.local_urls(caller, assets, door).map_err(failed),
        }
    }

    fn local_urls(
        &self,
        caller: &Caller,
        assets: &[Asset],
        door: &dyn Fn() -> Result<String, String>,
    ) -> Result<Vec<String>> {
        let mut budget = exports::Budget::of_call(assets.len());
        let export = |asset| self.exported(asset, &mut budget);
        let exported = assets.iter().map(export).collect::<Result<Vec<_>>>()?;
        if exported.iter().all(Option::is_some) {
            return Ok(exported.into_iter().flatten().collect());
        }
        let served = match door() {
            Ok(base) => self.served(caller, &base, assets)?,
            Err(_) => {
                budget.lift();
                let export = |asset| Ok(self.exported(asset, &mut budget)?.unwrap_or_default());
                assets.iter().map(export).collect::<Result<Vec<_>>>()?
            }
        };
        Ok(exported.into_iter().zip(served).map(|(file, other)| file.unwrap_or(other)).collect())
    }

    fn served(&self, caller: &Caller, base: &str, assets: &[Asset]) -> Result<Vec<String>> {
        let keys = self.url_keys()?;
        let books = self.catalog.books(caller.pass.scope())?;
        let public: Vec<&str> =
            books.iter().filter(|book| book.is_public).map(|book| book.name.as_str()).collect();
        let of_asset = |asset: &Asset| {
            let full = full_path(&asset.book, &asset.path);
            let address = format!("{base}/cdn/{}", encoded(&full));
            if asset.owner == caller.pass.account() && public.contains(&asset.book.as_str()) {
                return address;
            }
            let proof = keys.capability(Purpose::Asset, &assets::proof_of(asset.owner, &full));
            format!("{address}?k={proof}")
        };
        Ok(assets.iter().map(of_asset).collect())
    }

    /// Where an asset will be once its content has arrived at `base`.
    pub fn awaited_url(&self, caller: &Caller, base: &str, ticket: &Ticket) -> Answer<String> {
        let asset = std::slice::from_ref(&ticket.asset);
        let urls = match &self.options.links.cdn_base_url {
            Some(_) => self.asset_urls(caller, asset, &|| Err(String::new()))?,
            None => self
                .served(caller, base, asset)
                .map_err(|error| BookError::Engine { path: ticket.path.clone(), error })?,
        };
        Ok(urls.into_iter().next().unwrap_or_default())
    }

    /// The address of an archive: on the server, or of the file itself for a caller on this machine, whatever address the
    /// server has for others.
    pub fn archive_url(&self, caller: &Caller, archive: &Archive) -> String {
        match caller.base_url.as_ref().and_then(|_| self.address_for(caller)) {
            Some(base) => {
                format!("{base}/archives/{}?k={}", encoded(&archive.name), archive.proof)
            }
            None => exports::file_url(&archive.file),
        }
    }
}
