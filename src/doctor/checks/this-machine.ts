import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { requireRoom } from '../../api/data-folder.ts';
import { caBundleOf, hostCertificates } from '../../api/host-certificates.ts';
import { accessService, integrationsOf, serviceUrl } from '../../api/service-access.ts';
import type { Permission } from '../../contract/definition.ts';
import { isDataFolder, openDataFolder } from '../../ledger/data-folder.ts';
import { printFileIssue } from '../../suite/file-issues.ts';
import { missingPrices } from '../../suite/require-prices.ts';
import { attempt, byteSize, type Check, failureOf, ok, warn } from '../examine.ts';

export const configuration: Check = {
  name: 'configuration',
  async run({ config, configFailure }) {
    if (configFailure !== undefined) return failureOf(configFailure);
    const { profiles, sandboxes, models } = config;
    if (config.file === undefined) return ok('no offsite.yaml; the defaults apply');
    const issues = missingPrices(Object.keys(models), config).map(printFileIssue);
    if (issues.length > 0) return warn(issues.join('\n'), 'Suites that use these models are refused.');
    const counts = Object.entries({ profiles, sandboxes, models }).map(
      ([name, all]) => `${name}: ${Object.keys(all).length}`,
    );
    return ok(`${config.file} (${counts.join(', ')})`);
  },
};

/** Other programs use these too. Like them, Offsite ignores a missing file; this check reports it. */
const variables = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'] as const;

export const certificates: Check = {
  name: 'certificates',
  async run({ config, env }) {
    const bundle = await hostCertificates(config, env);
    for (const name of variables) {
      const path = env[name];
      if (!path || path === bundle?.path) continue;
      if (!(await attempt(() => caBundleOf({ env: {}, explicit: path }))).got)
        return warn(`${name} names ${path}, which is no readable PEM file`, `Correct ${name}, or unset it.`);
    }
    if (bundle === undefined) return ok('no CA bundle is named; only the public authorities are trusted');
    const count = bundle.pem.toString('latin1').split('-----BEGIN CERTIFICATE-----').length - 1;
    const who = config.caBundle === bundle.path ? 'caBundle of the configuration' : bundle.namedBy;
    return ok(`${bundle.path} (${who}): ${count} certificates`);
  },
};

/** Bytes. Less is enough to start, but not for long. */
const roomyBytes = 1024 ** 3;

export const dataFolder: Check = {
  name: 'data folder',
  async run({ dataFolder: folder }) {
    const free = requireRoom(folder);
    // The first run makes it. One whose name is misspelt here must not appear.
    if (existsSync(folder)) {
      openDataFolder(folder);
      await writeAndRemove(folder);
    }
    const found = `${folder}, ${byteSize(free)} free`;
    if (free >= roomyBytes) return ok(found);
    return warn(found, 'Free some space, or name another folder: --data-folder.');
  },
};

/** Writes like the ledger: to the disk, not only to its cache. */
async function writeAndRemove(folder: string): Promise<void> {
  const path = join(folder, `.doctor-${randomUUID()}`);
  try {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile('can be written');
    await file.sync();
  } finally {
    await rm(path, { force: true });
  }
}

/** The permissions to start and report. The specification does not name them, so this is an assumption. */
const wanted: readonly Permission[] = ['evals:read', 'evals:write'];

export const service: Check = {
  name: 'service',
  ofConfiguration: true,
  async run(surroundings) {
    const { config, env, runners, signal } = surroundings;
    const bundle = await attempt(() => hostCertificates(config, env));
    if (serviceUrl(surroundings) === undefined && !isDataFolder(surroundings.dataFolder))
      return ok('the embedded service, which the first run makes');
    await using access = await accessService({
      ...surroundings,
      creates: false,
      // Another check reports a bad bundle.
      caBundle: bundle.got ? bundle.value?.pem : undefined,
      integrations: integrationsOf(runners),
    });
    const { organization, credential, permissions } = await access.client.call('auth.whoami', {}, { signal });
    const key = credential.kind === 'apiKey' ? `key ${credential.start ?? ''}…` : credential.kind;
    const name = access.name === 'embedded' ? 'the embedded service' : access.name;
    const found = `${name}: ${organization.name}, ${key}`;
    const missing = wanted.filter((permission) => !permissions.includes(permission));
    if (missing.length === 0) return ok(found);
    const fix = 'If the service refuses runs, use a key with these permissions.';
    return warn(`${found}, without ${missing.join(' and ')}`, fix);
  },
};

/** Whether the variables for the models' keys are set. Never prints their values. */
export const modelKeys: Check = {
  name: "models' keys",
  ofConfiguration: true,
  async run({ config, env }) {
    const named = Object.entries(config.models).flatMap(([model, settings]) =>
      'apiKeyEnv' in settings && settings.apiKeyEnv ? [{ model, variable: settings.apiKeyEnv }] : [],
    );
    if (named.length === 0) return ok('no model needs one');
    const list = (some: typeof named) => some.map((one) => `${one.variable} (${one.model})`).join(', ');
    const unset = named.filter(({ variable }) => !env[variable]);
    if (unset.length === 0) return ok(`set: ${list(named)}`);
    return warn(`not set: ${list(unset)}`, 'Set them before running variants of these models.');
  },
};
