import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ByteStore } from '../base/byte-store.ts';
import type { Clock } from '../base/clock.ts';
import { inputError, messageOf } from '../base/offsite-error.ts';
import { serviceAnswers } from '../bounds/service.ts';
import { type Client, createClient } from '../client/client.ts';
import type { Exchange, ExchangeOptions, Transport } from '../client/exchange.ts';
import type { Integration } from '../contract/catalog.ts';
import { permissions } from '../contract/definition.ts';
import type { Runner } from '../harness/runner.ts';
import { openDataFolder, requireDataFolder } from '../ledger/data-folder.ts';
import { embeddedService } from '../ledger/platform.ts';
import { KnownKeys } from '../redaction/redactor.ts';
import type { Platform, PlatformTrials } from '../service/platform.ts';
import type { ServiceAnswer, ServiceRequest } from '../service/request/read-body.ts';
import { openService, type Service } from '../service/service.ts';
import type { Config } from '../suite/config-file.ts';
import { type HostEnvironment, namedKeys } from '../trial/prepare/environment.ts';

export interface ServiceAccess extends AsyncDisposable {
  client: Client;
  /** The service's name in the ledger: its address, or `embedded`. */
  name: string;
  /** The embedded service's platform batches. */
  platform?: PlatformTrials | undefined;
}

export interface ServiceSettings {
  config: Config;
  dataFolder: string;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  caBundle: Buffer | undefined;
  integrations: readonly Integration[];
  insecureHttp: boolean | undefined;
  /** The host variables that sandboxes may use, if they differ from the configuration's. */
  host?: HostEnvironment;
  /** Accepts platform batches at the embedded service. Without it, they are refused. */
  platform?: Platform | undefined;
  /** Whether the embedded service's data folder is made if it does not exist (default: true). */
  creates?: boolean;
  /** Informs the user of what was left out of an answer. */
  note?: (message: string) => void;
}

/** The organization of this machine's own runs. */
export const localOrganization = 'Local';

/**
 * Opens the Eval Service that `OFFSITE_URL` and `OFFSITE_API_KEY` or `offsite.yaml` configure. Without a
 * configuration, opens the embedded one in this process. Throws an `input` error if an address is configured
 * without a key.
 */
export async function accessService(settings: ServiceSettings): Promise<ServiceAccess> {
  if (settings.env.OFFSITE_URL === '') {
    throw inputError('SERVICE_ADDRESS_EMPTY', 'OFFSITE_URL is set, but empty', {
      hint: 'Give it the address of the service, or unset it to use the one in offsite.yaml, or the embedded one.',
    });
  }
  const url = serviceUrl(settings);
  return url ? remoteService(url, settings) : openEmbeddedService(settings);
}

/** The address of the configured service; undefined for the embedded one. */
export function serviceUrl({ config, env }: Pick<ServiceSettings, 'config' | 'env'>): string | undefined {
  return env.OFFSITE_URL ?? config.service?.url;
}

/** The name in the ledger of the configured service, which is not opened. */
export function serviceName(settings: Pick<ServiceSettings, 'config' | 'env'>): string {
  const url = serviceUrl(settings);
  // An address that cannot be read is refused when the service is opened.
  return url ? (URL.parse(url)?.origin ?? url) : embeddedService;
}

function remoteService(url: string, settings: ServiceSettings): ServiceAccess {
  const { config, env, clock, caBundle, insecureHttp, note } = settings;
  const keyName = config.service?.apiKeyEnv ?? 'OFFSITE_API_KEY';
  const apiKey = env[keyName];
  if (!apiKey) {
    throw inputError('API_KEY_MISSING', `the service ${url} is configured, but ${keyName} holds no API key`, {
      hint:
        `Set ${keyName}. Or, to use the embedded service, unset OFFSITE_URL and remove \`service\` ` +
        'from offsite.yaml.',
    });
  }
  const client = createClient({
    url,
    apiKey,
    clock,
    env,
    keys: keysWith(settings, apiKey),
    ...(caBundle && { caBundle }),
    note,
    insecureHttp: insecureHttp ?? config.service?.insecureHttp ?? false,
  });
  return { client, name: client.origin, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}

/**
 * The keys that no request may contain: those that sandboxes may not see either, and the client's API key.
 */
function keysWith({ config, env, host }: ServiceSettings, apiKey: string): KnownKeys {
  return new KnownKeys([...namedKeys(config, env), ...(host?.keys.named ?? []), ['the API key', apiKey]]);
}

async function openEmbeddedService(settings: ServiceSettings): Promise<ServiceAccess> {
  const { dataFolder, clock, integrations, platform, creates = true } = settings;
  if (!creates) requireDataFolder(dataFolder);
  const service = openService({ dataFolder, clock, integrations, ...(platform && { platform }) });
  try {
    const apiKey = machineKey(dataFolder);
    service.seedKey(apiKey, { organization: localOrganization, permissions, name: 'this machine' });
    const keys = keysWith(settings, apiKey);
    const transport = transportTo(service);
    const client = createClient({ url: 'http://localhost', transport, apiKey, clock, keys });
    return {
      // It has every operation of the contract.
      client: { ...client, offers: async () => 'offered' },
      name: embeddedService,
      platform: service.platform,
      async [Symbol.asyncDispose]() {
        await client[Symbol.asyncDispose]();
        await service.close();
      },
    };
  } catch (error) {
    await service.close();
    throw error;
  }
}

/**
 * The key that this machine's commands use with the embedded service. It is stored beside the database, and
 * only its owner can read it.
 */
function machineKey(dataFolder: string): string {
  const file = join(dataFolder, 'agent.key');
  if (!existsSync(file)) {
    openDataFolder(dataFolder);
    try {
      writeFileSync(file, `ofs_${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      // Another process has just created it.
      if (!existsSync(file)) throw error;
    }
  }
  return readFileSync(file, 'utf8').trim();
}

/**
 * The integrations that the embedded service lists: this Offsite's harnesses, and its sandbox. None needs
 * credentials.
 */
export function integrationsOf(runners: readonly Runner[]): Integration[] {
  const harnesses = runners.map(({ name, label }) => ({
    id: name,
    label,
    category: 'harness',
    authMethods: [],
  }));
  return [...harnesses, { id: 'local', label: 'Local Docker sandbox', category: 'sandbox', authMethods: [] }];
}

/**
 * Calls a service of this process. It gets, checks and answers the same requests as over HTTP. A request that
 * is aborted is still worked on.
 */
export function transportTo(service: Pick<Service, 'answer'>): Transport {
  return {
    origin: 'the embedded service',
    exchange({ origin, path, method = 'POST', headers, body = '' }, options) {
      const { signal } = options;
      if (signal.aborted) return Promise.resolve({ _tag: 'stopped', sent: false });
      const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : undefined;
      const named = new Map(Object.entries(headers));
      if (bytes) named.set('content-length', String(bytes.length));
      const request: ServiceRequest = {
        method,
        url: origin + path,
        headers: { get: (name) => named.get(name) ?? null },
        signal,
        body: typeof body === 'string' ? null : (Readable.toWeb(body) as ReadableStream<Uint8Array>),
        arrayBuffer: async () => bytes?.buffer ?? new ArrayBuffer(),
      };
      const { promise, resolve } = Promise.withResolvers<Exchange>();
      const stop = () => resolve({ _tag: 'stopped', sent: true });
      signal.addEventListener('abort', stop, { once: true });
      service
        .answer(request)
        .then((answer) => collected(answer, options))
        // An answer that is sent while it is built can break.
        .catch((error) => ({ _tag: 'broken' as const, sent: true, error: new Error(messageOf(error)) }))
        .then((exchanged) => {
          signal.removeEventListener('abort', stop);
          if (typeof body !== 'string') body.destroy();
          resolve(exchanged);
        });
      return promise;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function collected(
  { status, headers, body }: ServiceAnswer,
  { signal, progress, maximumBytes = serviceAnswers.bytes.answer }: ExchangeOptions,
): Promise<Exchange> {
  const store = new ByteStore();
  const pieces = typeof body === 'string' ? [Buffer.from(body)] : body instanceof Uint8Array ? [body] : body;
  for await (const piece of pieces) {
    if (signal.aborted) break;
    progress?.();
    if (store.size + piece.length > maximumBytes) return { _tag: 'oversized', status, maximumBytes };
    store.add(piece);
  }
  return { _tag: 'answered', status, headers, body: store.take() };
}
