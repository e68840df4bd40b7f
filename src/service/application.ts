import type { Logger } from 'pino';
import type { z } from 'zod';
import type { Clock } from '../base/clock.ts';
import { serviceRequests } from '../bounds/callers.ts';
import type { Integration } from '../contract/catalog.ts';
import type { Permission } from '../contract/definition.ts';
import { openApiDocument } from '../contract/openapi.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import { newIdentifier } from './identifiers.ts';
import { ApiError, bodyOf, type Piece, pieceSizes, refuse, refuseBody } from './json-response.ts';
import type { Reply, Steps } from './operations/call.ts';
import { type TakeEvidence, takesEvidence } from './operations/evidence.ts';
import { handlers } from './operations/handlers.ts';
import type { Auditor, Platform, PlatformRequest } from './platform.ts';
import { boundedLists } from './request/bounded-lists.ts';
import { issuesOf } from './request/issues.ts';
import { parseJson, readBody, type ServiceAnswer, type ServiceRequest } from './request/read-body.ts';
import { createShares, type Shares } from './request/shares.ts';
import type { KeyStore, Principal } from './store/keys.ts';
import type { Stores, Writer } from './store/stores.ts';

export interface ApplicationOptions {
  clock: Clock;
  /** What `connectors.integrations` answers. */
  integrations: readonly Integration[];
  /** Runs the trials of platform batches. Without it, such batches are refused. */
  platform?: Platform | undefined;
  /** Audits evidence that is sent. Without it, evidence is refused. */
  auditor?: Auditor | undefined;
  /** Logs one line per request, without keys. Without it, nothing is logged. */
  log?: Logger | undefined;
}

interface ApplicationParts extends ApplicationOptions {
  stores: Stores;
  writer: Writer;
  /** The identifiers of the platform's trials that run in this process. */
  inProgress: ReadonlySet<string>;
}

const noPause = () => Promise.resolve();

/** The schemas of the requests that were asked so far. */
const requests = new Map<OperationName, z.ZodType>();

/** What is known of a request while it is answered. */
interface Asked {
  request: ServiceRequest;
  /** Without its query. */
  path: string;
  requestId: string;
  principal?: Principal;
}

/** Answers requests: POST /v1/<operation>, and two documents that need no key. Never rejects. */
export function createApplication(
  parts: ApplicationParts,
): (request: ServiceRequest) => Promise<ServiceAnswer> {
  const { clock, log } = parts;
  const shares = createShares(clock);
  const takeEvidence = takesEvidence(parts.auditor, parts.writer);
  let description: string | undefined;

  async function route(asked: Asked): Promise<ServiceAnswer['body']> {
    const { request, path } = asked;
    const [, name] = /^\/v1\/([^/]+)$/.exec(path) ?? [];
    if (name !== undefined) return answer(asked, name, { ...parts, shares, takeEvidence });
    if (path !== '/openapi.json' && path !== resourceMetadataPath)
      throw refuse(404, 'There is nothing here; operations are at /v1/<operation>.');
    allowOnly(['GET', 'HEAD'], request.method);
    if (path === resourceMetadataPath) return JSON.stringify(resourceMetadata(request));
    description ??= JSON.stringify(openApiDocument());
    return description;
  }

  return async (request) => {
    const startedAt = clock.now();
    const asked: Asked = {
      request,
      path: new URL(request.url).pathname,
      requestId: newIdentifier('req'),
    };
    const answered = await route(asked).then(
      (body) => json(asked, body),
      (error: unknown) => failed(asked, error, log),
    );
    const { requestId, principal } = asked;
    const [path, durationMs] = [printablePath(asked), clock.now() - startedAt];
    const by = { organization: principal?.organization.slug, key: principal?.keyId };
    // Never headers and bodies, so that no key is logged. A key's id shows whose request it was.
    log?.info(
      { requestId, method: request.method, path, status: answered.status, durationMs, ...by },
      'request',
    );
    return answered;
  };
}

/**
 * Answers one operation. The checks are in the order that reveals the least: whether the operation exists,
 * who the caller is, whether they may use it, what they ask.
 */
async function answer(
  asked: Asked,
  name: string,
  parts: ApplicationParts & { shares: Shares; takeEvidence: TakeEvidence },
): Promise<ServiceAnswer['body']> {
  if (!isOperation(name)) throw refuse(404, `There is no operation ${JSON.stringify(name)}.`);
  const { request } = asked;
  allowOnly(['POST'], request.method);
  const { stores, writer, inProgress, integrations, platform, clock, shares } = parts;
  const principal = authenticate(request, stores.keys);
  asked.principal = principal;
  const operation = operations[name];
  authorize(principal, operation.permission);
  const most = operation.permission?.endsWith(':write')
    ? serviceRequests.bytes.body
    : serviceRequests.bytes.query;
  using share = new DisposableStack();
  const { hold } = share.use(shares.enter(principal.keyId));
  const file = 'file' in operation ? operation.file : undefined;
  if (file && hasType(request, file.types)) {
    authorize(principal, file.permission);
    const call = { stores, principal, now: clock.now() };
    return JSON.stringify(await parts.takeEvidence(call, request));
  }
  const isOptional = 'bodyOptional' in operation;
  const body = await readBody(request, { limit: most, isOptional, hold });
  const isLarge = body.length > serviceRequests.bytes.step;
  const turn = () => shares.turn(principal.keyId, body.length);
  // Others are served between the steps of a large request.
  const pause = isLarge ? turn : noPause;
  const room = isLarge ? share.use(await shares.room(principal.keyId)) : undefined;
  await turn();
  const given = body.length === 0 && isOptional ? {} : await paced(parseJson(body), pause);
  await pause();
  const schema = isLarge ? boundedLists<z.ZodType>(operation.request, turn) : schemaOf(name);
  const decoded = await schema.safeParseAsync(given);
  if (!decoded.success) throw refuseBody(issuesOf(decoded.error, given));

  const call = { stores, principal, inProgress, integrations, now: clock.now() };
  // The table pairs each name with its own request; TypeScript cannot follow a name that it does not know.
  const reply: Reply<object> = handlers[name](call, decoded.data as never);
  const made = 'next' in reply ? await paced(reply, pause) : reply;
  if ('response' in made) return JSON.stringify(made.response);
  if ('pieces' in made) {
    room?.[Symbol.dispose]();
    let began = clock.now();
    const nextPiece = async () => {
      if (clock.now() - began < serviceRequests.time.step) return;
      await shares.turn(principal.keyId, Number.POSITIVE_INFINITY);
      began = clock.now();
    };
    // If nobody reads it, it holds one piece.
    return await bodyOf(holding(share.move(), made.pieces), nextPiece, () => hold(pieceSizes.record));
  }
  const { batch, before, change } = made;
  // The engine may take long to answer.
  if (batch) room?.[Symbol.dispose]();
  const accepted = batch && (await acceptedBy(platform, batch));
  /** A large change has a turn and a transaction of its own. */
  const writeAlone = async <Result>(part: () => Result): Promise<Result> => {
    await shares.turn(principal.keyId, Number.POSITIVE_INFINITY);
    const written = writer.write(part);
    writer.flush();
    return await written;
  };
  for (const part of before ?? []) await writeAlone(part);
  const response = await (isLarge || before ? writeAlone(change) : writer.write(change));
  accepted?.queued();
  return JSON.stringify(response);
}

/** The pieces, with the share of their request until the last one. */
function* holding(share: Disposable, pieces: Iterable<Piece>): Generator<Piece> {
  using _ = share;
  yield* pieces;
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

function schemaOf(name: OperationName): z.ZodType {
  const schema = requests.get(name) ?? boundedLists<z.ZodType>(operations[name].request, noPause);
  requests.set(name, schema);
  return schema;
}

function hasType({ headers }: ServiceRequest, types: readonly string[]): boolean {
  return types.includes((headers.get('content-type') ?? '').trim().toLowerCase());
}

function allowOnly(methods: string[], method: string): void {
  if (methods.includes(method)) return;
  throw refuse(405, `Use ${methods[0]} here.`, { allow: methods.join(', ') });
}

function failed(asked: Asked, error: unknown, log: Logger | undefined): ServiceAnswer {
  if (error instanceof ApiError) return json(asked, JSON.stringify(error.body), error.status, error.headers);
  const { requestId } = asked;
  log?.error({ requestId, path: printablePath(asked), err: error }, 'a request failed');
  const message = `The service failed. Its log has the details under ${requestId}.`;
  return json(asked, JSON.stringify({ _tag: 'InternalError', message }), 500);
}

function json(
  { requestId }: Asked,
  body: ServiceAnswer['body'],
  status = 200,
  more: Readonly<Record<string, string>> = {},
): ServiceAnswer {
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': requestId,
    ...more,
  };
  return { status, headers, body };
}

/** The path, without a key that a caller put into it. */
function printablePath({ path }: Asked): string {
  return path.slice(0, 200).replace(/ofs_[\w-]{6,}/g, 'ofs_[redacted]');
}

/** The caller, by the key in `Authorization: Bearer`. Throws a 401 that says where to authenticate. */
function authenticate(request: ServiceRequest, keys: KeyStore): Principal {
  const header = request.headers.get('authorization');
  const secret = header?.match(/^Bearer +([\x21-\x7e]+) *$/i)?.[1];
  if (!secret) throw unauthorized(request, 'This operation needs Authorization: Bearer with an API key.');
  const principal = keys.find(secret);
  // One message for an unknown key and a revoked one: only the key's holder may know the difference.
  if (!principal) throw unauthorized(request, 'The API key is unknown or no longer active.', 'invalid_token');
  return principal;
}

function authorize(principal: Principal, permission: Permission | undefined): void {
  if (permission === undefined || principal.permissions.has(permission)) return;
  throw refuse(403, `The API key lacks the permission ${permission}.`);
}

/** RFC 6750 challenge. `resource_metadata` is from RFC 9728: the URL that says how to authenticate. */
function unauthorized(request: ServiceRequest, message: string, error?: string) {
  const metadata = new URL(resourceMetadataPath, request.url).href;
  const challenge = [
    'Bearer realm="offsite"',
    ...(error
      ? [
          `error="${error}"`,
          'error_description="make a key on the machine of the service: offsite service keys create --data-folder FOLDER"',
        ]
      : []),
    `resource_metadata="${metadata}"`,
  ];
  return refuse(401, message, { 'www-authenticate': challenge.join(', ') });
}

const resourceMetadataPath = '/.well-known/oauth-protected-resource';

/**
 * RFC 9728: how to authenticate here. There is no authorization server; keys are made on the machine that
 * runs the service.
 */
function resourceMetadata(request: ServiceRequest) {
  return {
    resource: new URL('/', request.url).href,
    resource_name: 'Offsite embedded Eval Service. Make an API key with: offsite service keys create',
    bearer_methods_supported: ['header'],
  };
}
