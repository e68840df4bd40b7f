import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, createClient } from '../client/client.ts';
import type { Clock } from '../clock.ts';
import type { Integration } from '../contract/catalog.ts';
import { permissions } from '../contract/identity.ts';
import type { Runner } from '../harness/runner.ts';
import { openDataFolder } from '../ledger/data-folder.ts';
import { OffsiteError } from '../offsite-error.ts';
import { KnownKeys } from '../redaction/known-keys.ts';
import { openService } from '../service/service.ts';
import type { Config } from '../suite/config-file.ts';
import { type HostEnvironment, namedKeys } from '../trial/host-environment.ts';

export interface ServiceAccess extends AsyncDisposable {
  client: Client;
  /** What the ledger calls the service: its address, or `embedded`, whose address is another each time. */
  name: string;
}

export interface ServiceSettings {
  config: Config;
  dataFolder: string;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  caBundle: Buffer | undefined;
  integrations: readonly Integration[];
  insecureHttp: boolean | undefined;
  /** What sandboxes may ask for, where that is not as the configuration says. */
  host?: HostEnvironment;
}

/** The organization that this machine's own runs land in. */
export const localOrganization = 'Local';

/**
 * The Eval Service that is configured by `OFFSITE_URL` and `OFFSITE_API_KEY` or by `offsite.yaml`; without
 * either, the embedded one, in this process, on loopback. Throws an `input` error where only half is given.
 */
export async function accessService(settings: ServiceSettings): Promise<ServiceAccess> {
  const { config, env } = settings;
  const url = env.OFFSITE_URL || config.service?.url;
  return url ? remoteService(url, settings) : embeddedService(settings);
}

function remoteService(url: string, settings: ServiceSettings): ServiceAccess {
  const { config, env, clock, caBundle, insecureHttp } = settings;
  const keyName = config.service?.apiKeyEnv ?? 'OFFSITE_API_KEY';
  const apiKey = env[keyName];
  if (!apiKey) {
    throw new OffsiteError(`the service ${url} is configured, but ${keyName} holds no API key`, {
      code: 'API_KEY_MISSING',
      kind: 'input',
      hint: `Set ${keyName}; or unset OFFSITE_URL and take \`service\` out of offsite.yaml to use the embedded service.`,
    });
  }
  const client = createClient({
    url,
    apiKey,
    clock,
    env,
    keys: keysWith(settings, apiKey),
    ...(caBundle && { caBundle }),
    insecureHttp: insecureHttp ?? config.service?.insecureHttp ?? false,
  });
  return { client, name: client.origin, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}

/**
 * What no request may hold: what the sandboxes may not see either, and the key that this client is let in by.
 */
function keysWith({ config, env, host }: ServiceSettings, apiKey: string): KnownKeys {
  return new KnownKeys([...namedKeys(config, env), ...(host?.keys.named ?? []), ['the API key', apiKey]]);
}

async function embeddedService(settings: ServiceSettings): Promise<ServiceAccess> {
  const { dataFolder, clock, integrations } = settings;
  const service = openService({ dataFolder, clock, integrations });
  try {
    const apiKey = agentKey(dataFolder);
    service.seedKey(apiKey, { organization: localOrganization, permissions, name: 'this machine' });
    const { url } = await service.listen();
    const client = createClient({ url, apiKey, clock, keys: keysWith(settings, apiKey) });
    return {
      client,
      name: 'embedded',
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
 * The key that this machine's own commands use with the embedded service; kept beside its database, for its
 * owner alone.
 */
function agentKey(dataFolder: string): string {
  const file = join(dataFolder, 'agent.key');
  if (!existsSync(file)) {
    openDataFolder(dataFolder);
    try {
      writeFileSync(file, `ofs_${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      // Another process made it meanwhile.
      if (!existsSync(file)) throw error;
    }
  }
  return readFileSync(file, 'utf8').trim();
}

/**
 * What the embedded service says can be connected: the harnesses this Offsite has, and its sandbox. None
 * takes credentials.
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
