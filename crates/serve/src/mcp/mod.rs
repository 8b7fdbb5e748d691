//! The MCP handler, written by hand so that listing and calling ask the same policy table.

mod convert;
#[cfg(feature = "conformance")]
pub(crate) mod fixture;
mod progress;
mod subscribe;

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

#[expect(deprecated, reason = "older clients still set a log level")]
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, SetLevelRequestParams, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CompletionInfo, CustomRequest, CustomResult, DiscoverResult, ErrorCode, GetPromptRequestParams,
        GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ServerCapabilities,
        ServerConfig, SubscriptionFilter, Tool,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::json;
use shelf_base::{
    bounds::{ADDRESS_BYTES, ECHO_BYTES},
    clipped,
};
use shelf_engine::{Caller, FileAccess, Pass};
use shelf_tools::{
    policy::Selection,
    prompts::{self, Prompts},
    resources,
};

use crate::{
    App,
    app::{BlockingError, Work},
    backlog::Backlog,
    http::sessions::Sessions,
    stdio::Identity,
};

type Context = RequestContext<RoleServer>;

/// How long clients may remember the list of tools.
const TOOLS_TTL_MS: u64 = 60_000;

const INSTRUCTIONS: &str = "Shelfmark is a library: store files and text once, find them again, and get them back byte for byte. \
Start with `status` or `list` to see what is there. Use `add` to store a file, a folder, or text under a name; `get` to read a \
document by hash or name (set include_content for its text); `search` to find documents by words and meaning; `grep` to find lines by regular expression; `update` for tags and metadata; `delete_by_name` to remove documents; `download` to store what a URL has. \
For documents with a title, `store_document_tool` and `search_documents_tool`, which gives the passages that answer a question within a budget of tokens; collections and their access tokens have tools of their own. For books, `read_content` and `write_content` with file_hash keep agents from overwriting each other; `upload_asset` stores media and `get_book_archive` gives the whole book. Every add makes a snapshot: `list_snapshots` shows them and `restore` writes one back into a folder. Errors say what to do next.";

/// One connection's handler; clones share everything.
#[derive(Clone)]
pub(crate) struct Handler {
    app: Arc<App>,
    who: Who,
    /// Lowest level of log messages that the client asked for, plus one; 0 for none.
    log_level: Arc<AtomicU8>,
    /// What the client of this connection subscribed to.
    own: Arc<subscribe::OwnSubscriptions>,
    /// What the client has not read yet, where that is not bounded by the connection itself.
    backlog: Option<Arc<Backlog>>,
}

/// How a handler knows who calls.
#[derive(Clone)]
pub(crate) enum Who {
    /// Each HTTP request brings its own proof, checked on arrival.
    EachRequest(Arc<Sessions>),
    /// A stream whose every message was checked to come from the same identity.
    Stream(Admitted, Identity),
    /// The process itself: stdio.
    Process(Identity),
}

/// What the authentication of an HTTP request leaves for the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub caller: Caller,
    pub selection: Selection,
}

impl Handler {
    pub(crate) fn new(app: Arc<App>, who: Who) -> Self {
        Self { app, who, log_level: Arc::default(), own: Arc::default(), backlog: None }
    }

    /// The handler of a client that may leave messages unread.
    pub(crate) fn with_backlog(mut self, backlog: Arc<Backlog>) -> Self {
        self.backlog = Some(backlog);
        self
    }

    /// Who asks, and which tools it may see.
    fn admitted(&self, context: &Context) -> Result<Admitted, ErrorData> {
        let of_process = |pass| {
            let caller = Caller { pass, file_access: FileAccess::OperatingSystem, base_url: None };
            Ok(Admitted { caller, selection: self.app.selection.clone() })
        };
        match &self.who {
            Who::EachRequest(_) => {}
            Who::Stream(admitted, _) => return Ok(admitted.clone()),
            Who::Process(Identity::Owner) => return of_process(Pass::owner()),
            Who::Process(Identity::Token(token)) => {
                let pass = self.app.library.verify_token(token.reveal());
                return of_process(
                    pass.map_err(|refusal| ErrorData::invalid_request(refusal.to_string(), None))?,
                );
            }
        }
        let parts = context.extensions.get::<http::request::Parts>();
        let admitted = parts.and_then(|parts| parts.extensions.get::<Admitted>()).cloned();
        admitted.ok_or_else(|| ErrorData::invalid_request("Not authenticated", None))
    }

    async fn in_library<T: Send + 'static>(
        &self,
        context: &Context,
        work: impl FnOnce(&App, &Admitted, &shelf_base::CallContext) -> Result<T, shelf_engine::Error>
        + Send
        + 'static,
    ) -> Result<T, ErrorData> {
        let admitted = self.admitted(context)?;
        if !resources::allowed(&admitted.caller, &admitted.selection) {
            return Err(ErrorData::invalid_request("Insufficient permissions: read access required", None));
        }
        let work = move |app: &Arc<App>, call: &shelf_base::CallContext| work(app, &admitted, call);
        let done = self.app.blocking_call(Work::Read, self.app.new_call(), work).await;
        done.map_err(undone)?.map_err(|error| convert::protocol_error(&error))
    }

    /// Asks the prompts, which may lie in files.
    async fn with_prompts<T: Send + 'static>(
        &self,
        context: &Context,
        ask: impl FnOnce(&Prompts, &Caller, &Selection) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let Admitted { caller, selection } = self.admitted(context)?;
        let ask = move |app: &Arc<App>| ask(&app.prompts, &caller, &selection);
        self.app.blocking(Work::Read, self.app.new_call(), ask).await.map_err(undone)
    }

    fn log(&self, context: &Context, level: u8, text: String) {
        let asked = self.log_level.load(Ordering::Relaxed);
        if asked == 0 || level + 1 < asked {
            return;
        }
        let peer = context.peer.clone();
        #[expect(deprecated, reason = "older clients still set a log level")]
        tokio::spawn(async move {
            let level = if level >= 3 { LoggingLevel::Warning } else { LoggingLevel::Debug };
            let message = LoggingMessageNotificationParam::new(level, json!(text)).with_logger("shelfmark");
            let _ = tokio::time::timeout(progress::PATIENCE, peer.notify_logging_message(message)).await;
        });
    }
}

/// The stateless revision of the protocol, or a later one.
fn is_modern(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        #[expect(deprecated, reason = "older clients still set a log level")]
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        let implementation = Implementation::new("shelfmark", env!("CARGO_PKG_VERSION"))
            .with_title("Shelfmark")
            .with_description(
                "A library for AI agents and people: store anything once, find it fast, cite it exactly.",
            );
        ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn discover(&self, _: Context) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let found = DiscoverResult::from_server_info(versions, self.get_info());
        Ok(found.with_ttl_ms(TOOLS_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    #[expect(deprecated, reason = "older clients still set a log level")]
    async fn set_level(&self, request: SetLevelRequestParams, context: Context) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "logging/setLevel", None));
        }
        let level = match request.level {
            LoggingLevel::Debug => 0,
            LoggingLevel::Info => 1,
            LoggingLevel::Notice => 2,
            LoggingLevel::Warning => 3,
            _ => 4,
        };
        // Requests over HTTP stand alone: what one client asks for must not change what another one gets.
        if !matches!(self.who, Who::EachRequest(_)) {
            self.log_level.store(level + 1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        #[cfg(feature = "conformance")]
        if let Some(tool) = fixture::tool(name) {
            return Some(tool);
        }
        shelf_tools::find(name).map(|tool| convert::tool(tool, true))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.and_then(|request| request.cursor).is_some() {
            return Err(ErrorData::invalid_params("cursor is not one that this list gave", None));
        }
        let Admitted { caller, selection } = self.admitted(&context)?;
        let listed = self.app.listed(caller, selection).await.map_err(undone)?;
        let tools: Vec<Tool> =
            listed.into_iter().map(|tool| convert::tool(tool, is_modern(&context))).collect();
        #[cfg(feature = "conformance")]
        let tools = [tools, fixture::tools().to_vec()].concat();
        let list = ListToolsResult::with_all_items(tools);
        Ok(if is_modern(&context) {
            list.with_ttl_ms(TOOLS_TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            list
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        #[cfg(feature = "conformance")]
        if let Some(outcome) = fixture::call(&request, &context).await {
            return self.admitted(&context).and(outcome);
        }
        let Some(tool) = shelf_tools::find(&request.name) else {
            return Err(convert::unknown_tool(&request.name));
        };
        let Admitted { caller, selection } = self.admitted(&context)?;
        let is_single = self.backlog.as_ref().is_some_and(|backlog| backlog.is_single());
        let call = self.app.new_call();
        let call = if is_single { call.in_place() } else { call };
        let (call, reporting) = progress::attach(call, &context);
        let (arguments, is_modern) = (request.arguments.unwrap_or_default(), is_modern(&context));
        let finish = move |answer| convert::answer(answer, is_modern);
        let work = self.app.run(tool, selection, caller, call.clone(), arguments, finish);
        let outcome = tokio::select! {
            outcome = work => outcome,
            () = context.ct.cancelled() => {
                call.cancel();
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
        };
        drop(call);
        if let Some(reporting) = reporting {
            // Progress that is still on its way belongs before the reply.
            let _ = tokio::time::timeout(progress::PATIENCE, reporting).await;
        }
        Ok(match outcome {
            Ok(result) => {
                self.log(&context, 0, format!("{} succeeded", tool.name));
                result.into()
            }
            Err(failure) => {
                self.log(&context, 3, format!("{} failed: {}", tool.name, failure.message));
                convert::failure(failure).into()
            }
        })
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let page = self.in_library(&context, move |app, admitted, call| {
            resources::list(&app.library, &admitted.caller, cursor, call)
        });
        let (listed, next) = page.await?;
        let listed: Vec<Resource> = listed.into_iter().map(convert::resource).collect();
        #[cfg(feature = "conformance")]
        let listed = [fixture::resources()?, listed].concat();
        let mut result = ListResourcesResult::with_all_items(listed);
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let Admitted { caller, selection } = self.admitted(&context)?;
        let mut templates = convert::templates();
        templates.retain(|template| resources::may_read(&caller, &selection, &template.uri_template));
        #[cfg(feature = "conformance")]
        let templates = [templates, fixture::templates()?].concat();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        #[cfg(feature = "conformance")]
        if let Some(read) = fixture::read(&uri) {
            return self.admitted(&context).and(read.map(Into::into));
        }
        let found = self.in_library(&context, move |app, Admitted { caller, selection }, call| {
            resources::read(&app.library, caller, selection, &uri, call)
        });
        match found.await? {
            Some(read) => Ok(ReadResourceResult::new(vec![convert::contents(read, request.uri)]).into()),
            None => {
                let uri = clipped(&request.uri, ADDRESS_BYTES);
                let message = format!("no resource {uri}: list the resources or use the templates");
                Err(ErrorData::resource_not_found(message, Some(json!({ "uri": uri }))))
            }
        }
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: Context) -> Result<(), ErrorData> {
        self.subscribe_to(request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.unsubscribe_from(&request.uri, &context)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.as_deref().unwrap_or_default();
        Some(SubscriptionFilter::builder().resource_subscriptions(subscribe::accepted(uris)).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listen_to(context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        if request.and_then(|request| request.cursor).is_some() {
            return Err(ErrorData::invalid_params("cursor is not one that this list gave", None));
        }
        let listed = self.with_prompts(&context, Prompts::list).await?;
        let listed: Vec<Prompt> = listed.into_iter().map(convert::prompt).collect();
        #[cfg(feature = "conformance")]
        let listed = [listed, fixture::prompts()?].concat();
        let list = ListPromptsResult::with_all_items(listed);
        // Files may change at any time.
        Ok(if is_modern(&context) { list.with_ttl_ms(0).with_cache_scope(CacheScope::Private) } else { list })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        #[cfg(feature = "conformance")]
        if let Some(outcome) = fixture::prompt(&request) {
            return self.admitted(&context).and(outcome);
        }
        let given = convert::prompt_arguments(request.arguments.unwrap_or_default())?;
        let got = self.with_prompts(&context, move |prompts, caller, selection| {
            prompts.get(caller, selection, &request.name, &given)
        });
        let got = got.await?.map_err(|refused| ErrorData::invalid_params(refused.to_string(), None))?;
        Ok(convert::got_prompt(got).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let (name, text) = (request.argument.name, request.argument.value);
        let template = request.r#ref.as_resource_uri().map(str::to_owned);
        if let Some(prompt) = request.r#ref.as_prompt_name().map(str::to_owned) {
            let argument = name.clone();
            let takes = self.with_prompts(&context, move |prompts, caller, selection| {
                prompts.takes(caller, selection, &prompt, &argument)
            });
            // For a prompt that is not there, too, there is nothing to complete.
            if !takes.await? {
                return Ok(CompleteResult::new(CompletionInfo::default()));
            }
        }
        let found = self.in_library(&context, move |app, Admitted { caller, selection }, _| match template {
            Some(template) => resources::complete(&app.library, caller, selection, &template, &name, &text),
            None => prompts::complete(&app.library, caller, &name, &text),
        });
        let (values, total) = found.await?;
        let more = total.is_none_or(|total| total > values.len() as u64);
        let info =
            CompletionInfo::with_pagination(values, total.and_then(|total| u32::try_from(total).ok()), more);
        Ok(CompleteResult::new(info.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        // Known methods arrive here when their parameters are not of the right form.
        const KNOWN: &[&str] =
            &["tools/call", "resources/read", "completion/complete", "prompts/get", "subscriptions/listen"];
        const OF_OLDER_REVISIONS: &[&str] =
            &["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
        let method = request.method.as_str();
        if KNOWN.contains(&method) || (OF_OLDER_REVISIONS.contains(&method) && !is_modern(&context)) {
            let message = match method {
                "logging/setLevel" => LEVELS.to_owned(),
                method => format!("the parameters of {method} are not of the right form"),
            };
            return Err(ErrorData::invalid_params(message, None));
        }
        let method = clipped(&request.method, ECHO_BYTES).into_owned();
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}

const LEVELS: &str =
    "level must be one of debug, info, notice, warning, error, critical, alert and emergency";

fn undone(why: BlockingError) -> ErrorData {
    let text = match why {
        BlockingError::Busy => "the server is busy; nothing was done",
        BlockingError::Defect => "the request ended by a defect",
    };
    ErrorData::internal_error(text, None)
}

/// Which files of the machine a caller of each transport reaches.
pub(crate) const HTTP_FILE_ACCESS: FileAccess = FileAccess::Configured;
