import type { Context } from 'hono';
import { Hono } from 'hono';
import type { Logger } from 'pino';
import type { z } from 'zod';
import type { Clock } from '../base/clock.ts';
import { serviceRequests } from '../bounds/callers.ts';
import type { Integration } from '../contract/catalog.ts';
import { openApiDocument } from '../contract/openapi.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import { ApiError, refuse, refuseBody } from './api-error.ts';
import type { Auditor } from './auditor.ts';
import { newIdentifier } from './identifiers.ts';
import { bodyOf, type Piece, pieceSizes } from './json-response.ts';
import type { Change, Steps } from './operations/call.ts';
import { type TakeEvidence, takesEvidence } from './operations/evidence.ts';
import { handlers } from './operations/handlers.ts';
import type { Platform, PlatformRequest } from './platform.ts';
import { authenticate, authorize, resourceMetadata, resourceMetadataPath } from './request/authenticate.ts';
import { boundedLists } from './request/bounded-lists.ts';
import { issuesOf } from './request/issues.ts';
import { readBody } from './request/read-body.ts';
import { parseJson } from './request/request-json.ts';
import { createShares, type Shares } from './request/shares.ts';
import type { Principal } from './store/keys.ts';
import type { Stores } from './store/stores.ts';
import type { Writer } from './store/writer.ts';

export interface ApplicationParts {
  stores: Stores;
  writer: Writer;
  /** The identifiers of the platform's trials that run in this process. */
  inProgress: ReadonlySet<string>;
  integrations: readonly Integration[];
  /** Without it, platform batches are refused. */
  platform: Platform | undefined;
  /** Without it, evidence is refused. */
  auditor: Auditor | undefined;
  clock: Clock;
  /** Without it, nothing is logged. */
  log: Logger | undefined;
}

const requests = Object.fromEntries(
  Object.entries(operations).map(([name, { request }]) => [name, boundedLists(request)]),
) as Record<OperationName, z.ZodType>;

interface Environment {
  Variables: { requestId: string; principal?: Principal };
}

/** The HTTP side of the service: POST /v1/<operation>, and two documents that need no key. */
export function createApplication(parts: ApplicationParts): Hono<Environment> {
  const { clock, log } = parts;
  const application = new Hono<Environment>();
  const shares = createShares(clock);
  const takeEvidence = takesEvidence(parts.auditor, parts.writer);
  const description = JSON.stringify(openApiDocument());

  application.use(async (context, next) => {
    const startedAt = clock.now();
    context.set('requestId', newIdentifier('req'));
    await next();
    logRequest(log, context, clock.now() - startedAt);
  });

  application.all('/v1/:operation', (context) =>
    answer(context, context.req.param('operation'), { ...parts, shares, takeEvidence }),
  );
  application.all('/openapi.json', (context) => {
    allowOnly(['GET', 'HEAD'], context.req.method);
    return json(context, description);
  });
  application.all(resourceMetadataPath, (context) => {
    allowOnly(['GET', 'HEAD'], context.req.method);
    return json(context, JSON.stringify(resourceMetadata(context.req.raw)));
  });
  application.notFound((context) =>
    failed(context, refuse(404, 'There is nothing here; operations are at /v1/<operation>.')),
  );
  application.onError((error, context) => {
    if (error instanceof ApiError) return failed(context, error);
    const requestId = context.get('requestId');
    log?.error({ requestId, path: printablePath(context), err: error }, 'a request failed');
    const message = `The service failed. Its log has the details under ${requestId}.`;
    return json(context, JSON.stringify({ _tag: 'InternalError', message }), 500);
  });
  return application;
}

/**
 * Answers one operation. The checks are in the order that reveals the least: whether the operation exists,
 * who the caller is, whether they may use it, what they ask.
 */
async function answer(
  context: Context<Environment>,
  name: string,
  parts: ApplicationParts & { shares: Shares; takeEvidence: TakeEvidence },
): Promise<Response> {
  if (!isOperation(name)) throw refuse(404, `There is no operation ${JSON.stringify(name)}.`);
  allowOnly(['POST'], context.req.method);
  const { stores, writer, inProgress, integrations, platform, clock, shares } = parts;
  const principal = authenticate(context.req.raw, stores.keys);
  context.set('principal', principal);
  const operation = operations[name];
  authorize(principal, operation.permission);
  const most = operation.permission?.endsWith(':write')
    ? serviceRequests.bytes.body
    : serviceRequests.bytes.query;
  using share = new DisposableStack();
  const { hold } = share.use(shares.enter(principal.keyId));
  const file = 'file' in operation ? operation.file : undefined;
  if (file && hasType(context, file.types)) {
    authorize(principal, file.permission);
    const call = { stores, principal, now: clock.now() };
    return json(context, JSON.stringify(await parts.takeEvidence(call, context.req.raw)));
  }
  const isOptional = 'bodyOptional' in operation;
  const text = await readBody(context.req.raw, { limit: most, isOptional, hold });
  const turn = () => shares.turn(principal.keyId, text.length);
  const isLarge = text.length > serviceRequests.bytes.step;
  // Others are served between the steps of a large request.
  const pause = isLarge ? turn : () => Promise.resolve();
  await turn();
  const asked = text === '' && isOptional ? {} : parseJson(text);
  await pause();
  const decoded = isLarge
    ? await boundedLists<z.ZodType>(operation.request, turn).safeParseAsync(asked)
    : requests[name].safeParse(asked);
  if (!decoded.success) throw refuseBody(issuesOf(decoded.error, asked));

  const handler = handlers[name];
  const call = { stores, principal, inProgress, integrations, now: clock.now() };
  // The table pairs each name with its own request; TypeScript cannot follow a name that it does not know.
  const request = decoded.data as never;
  if (!handler.writes) {
    const response: object = handler.answer(call, request);
    if (!('pieces' in response)) return json(context, JSON.stringify(response));
    const held = share.move();
    let began = clock.now();
    const nextPiece = async () => {
      if (clock.now() - began < serviceRequests.time.step) return;
      await shares.turn(principal.keyId, Number.POSITIVE_INFINITY);
      began = clock.now();
    };
    const body = await bodyOf(response.pieces as Iterable<Piece>, nextPiece, {
      // If nobody reads it, it holds one piece.
      streams: () => hold(pieceSizes.record),
      ended: () => held.dispose(),
    });
    return json(context, body);
  }
  const steps: Steps<Change<object>> = handler.prepare(call, request);
  const { batch, change, isLarge: isLargeChange = isLarge } = await paced(steps, pause);
  const accepted = batch && (await acceptedBy(platform, batch));
  if (isLargeChange) await shares.turn(principal.keyId, Number.POSITIVE_INFINITY);
  const written = writer.write(change);
  // A large change has a transaction of its own.
  if (isLargeChange) writer.flush();
  const response = await written;
  accepted?.queued();
  return json(context, JSON.stringify(response));
}

/** Takes the steps, and waits for `pause` between them. */
async function paced<Result>(steps: Steps<Result>, pause: () => Promise<void>): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await pause();
  }
}

/** Refuses a platform batch that nothing can run here. */
async function acceptedBy(platform: Platform | undefined, batch: PlatformRequest): Promise<Platform> {
  if (!platform) {
    throw refuse(
      409,
      'Nothing runs trials here: start the batch with local: true and report its trials, ' +
        'or serve with an engine.',
    );
  }
  const refusal = await platform.refusal(batch);
  if (refusal) throw refuse(refusal.status, refusal.message);
  return platform;
}

function isOperation(name: string): name is OperationName {
  return Object.hasOwn(operations, name);
}

function hasType({ req }: Context<Environment>, types: readonly string[]): boolean {
  return types.includes((req.header('content-type') ?? '').trim().toLowerCase());
}

function allowOnly(methods: string[], method: string): void {
  if (methods.includes(method)) return;
  throw refuse(405, `Use ${methods[0]} here.`, { allow: methods.join(', ') });
}

function failed(context: Context<Environment>, { status, body, headers }: ApiError): Response {
  return json(context, JSON.stringify(body), status, headers);
}

function json(
  context: Context<Environment>,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  status: 200 | ApiError['status'] | 500 = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return context.body(body, status, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': context.get('requestId'),
    ...headers,
  });
}

/** Never logs headers and bodies, so that no key is logged. A key's id shows whose request it was. */
function logRequest(log: Logger | undefined, context: Context<Environment>, durationMs: number): void {
  const principal = context.get('principal');
  log?.info(
    {
      requestId: context.get('requestId'),
      method: context.req.method,
      path: printablePath(context),
      status: context.res.status,
      durationMs,
      organization: principal?.organization.slug,
      key: principal?.keyId,
    },
    'request',
  );
}

/** The path without its query, and without a key that a caller put into it. */
function printablePath(context: Context<Environment>): string {
  return context.req.path.slice(0, 200).replace(/ofs_[\w-]{6,}/g, 'ofs_[redacted]');
}
