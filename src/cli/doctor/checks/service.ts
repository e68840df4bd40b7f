import type { Permission } from '../../../contract/identity.ts';
import { hostCertificates } from '../../host-certificates.ts';
import { accessService, integrationsOf } from '../../service-access.ts';
import type { Check } from '../check.ts';
import { attempt } from '../examine.ts';

/** The permissions to start and report. The specification does not name them, so this is an assumption. */
const wanted: readonly Permission[] = ['evals:read', 'evals:write'];

export const service: Check = {
  name: 'service',
  ofConfiguration: true,
  async run(surroundings) {
    const { config, env, runners, signal } = surroundings;
    const bundle = await attempt(() => hostCertificates(config, env));
    await using access = await accessService({
      ...surroundings,
      // Another check reports a bad bundle.
      caBundle: bundle.got ? bundle.value?.pem : undefined,
      integrations: integrationsOf(runners),
    });
    const { organization, credential, permissions } = await access.client.call('auth.whoami', {}, { signal });
    const key = credential.kind === 'apiKey' ? `key ${credential.start ?? ''}…` : credential.kind;
    const name = access.name === 'embedded' ? 'the embedded service' : access.name;
    const found = `${name}: ${organization.name}, ${key}`;
    const missing = wanted.filter((permission) => !permissions.includes(permission));
    if (missing.length === 0) return { state: 'ok', found };
    const fix = 'If the service refuses runs, use a key with these permissions.';
    return { state: 'warn', found: `${found}, without ${missing.join(' and ')}`, fix };
  },
};
