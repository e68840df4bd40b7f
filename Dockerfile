# The agent's own image.
#
#   docker build -t offsite .                                   where a registry answers
#   docker build -t offsite --build-arg BASE=offsite/base .     on the base image that `npm run quickstart` makes
#   docker build -t offsite-fleet --build-arg FLEET=yes .       with the packages that `offsite fleet` needs
#
# npm behind a company's TLS proxy: put the proxy's authority into the file `ca-bundle.pem` beside this one (for
# example `cp /etc/ssl/certs/ca-certificates.crt ca-bundle.pem`). Only the first stage sees it; the image does not hold it.
#
# To run it, give it the engine, and a folder with the suite and the ledger:
#
#   docker run --rm -v /var/run/docker.sock:/var/run/docker.sock -v "$PWD:/work" -e OFFSITE_HOME=/work/.offsite \
#     offsite run suite.yaml

ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /opt/offsite
# The bracket makes the file optional: COPY wants a match for each name that has no wildcard, and only for those.
COPY package.json package-lock.json .npmrc ca-bundle.pe[m] ./
COPY scripts/dependencies/node/package.json scripts/dependencies/node/
# The image's own Node is new enough: the one from npm need not be fetched, so no install script has to run.
RUN if [ -f ca-bundle.pem ]; then export NODE_EXTRA_CA_CERTS="$PWD/ca-bundle.pem"; fi \
 && npm ci --ignore-scripts --no-progress --loglevel=error
COPY . .
ARG FLEET=
# dist/ has all that the command line needs. `offsite fleet` needs packages beside it. Temporal's native core comes for
# five platforms, with its sources. The image needs this platform's.
RUN PATH="$PWD/node_modules/.bin:$PATH" && export PATH && rm -f node_modules/.bin/node && node scripts/build.ts \
 && if [ -z "$FLEET" ]; then rm -rf node_modules && mkdir node_modules; else \
      node scripts/keep-fleet-packages.ts \
      && npm prune --omit=dev --offline --ignore-scripts --no-progress --loglevel=error \
      && rm -rf node_modules/offsite-node node_modules/node-linux-* node_modules/.cache \
      && cd node_modules/@temporalio/core-bridge && rm -rf sdk-core \
      && find releases -mindepth 1 -maxdepth 1 ! -name "$(uname -m)-unknown-linux-gnu" -exec rm -r {} +; fi

FROM ${BASE}
WORKDIR /opt/offsite
COPY --from=build /opt/offsite/package.json ./
COPY --from=build /opt/offsite/node_modules ./node_modules
COPY --from=build /opt/offsite/dist ./dist
COPY --from=build /opt/offsite/bin ./bin
COPY --from=build /opt/offsite/examples ./examples
RUN ln -s /opt/offsite/bin/offsite.mjs /usr/local/bin/offsite
ENV NODE_ENV=production
WORKDIR /work
ENTRYPOINT ["offsite"]
CMD ["--help"]
