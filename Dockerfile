# syntax=docker/dockerfile:1
# The last stage has the static program and nothing else; `--target with-ffmpeg` adds what citing clips of recordings needs.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --locked --profile dist --package shelf \
    && cp target/dist/shelf /shelf \
    && mkdir /library && chmod 700 /library

FROM alpine:3.22 AS with-ffmpeg
RUN apk add --no-cache ffmpeg
COPY --from=build /shelf /usr/bin/shelf
COPY --from=build --chown=10001:10001 /library /library
USER 10001:10001
ENV SHELF_DATA_DIR=/library SHELF_HTTP_LISTEN=0.0.0.0:7433 SHELF_ADMIN_LISTEN=off
VOLUME /library
EXPOSE 7433
HEALTHCHECK CMD ["/usr/bin/shelf", "--quiet", "status"]
ENTRYPOINT ["/usr/bin/shelf"]
CMD ["serve", "--http"]

FROM scratch
COPY --from=build /shelf /usr/bin/shelf
COPY --from=build --chown=10001:10001 /library /library
USER 10001:10001
ENV SHELF_DATA_DIR=/library SHELF_HTTP_LISTEN=0.0.0.0:7433 SHELF_ADMIN_LISTEN=off
VOLUME /library
EXPOSE 7433
HEALTHCHECK CMD ["/usr/bin/shelf", "--quiet", "status"]
ENTRYPOINT ["/usr/bin/shelf"]
CMD ["serve", "--http"]
