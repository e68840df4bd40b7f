import type { Permission } from '../../../contract/identity.ts';
import { hostCertificates } from '../../host-certificates.ts';
import { accessService, integrationsOf } from '../../service-access.ts';
import type { Check } from '../check.ts';
import { attempt } from '../examine.ts';

/** What starting and reporting takes. The specification does not say; it stands to reason. */
const wanted: readonly Permission[] = ['evals:read', 'evals:write'];

export const service: Check = {
  name: 'service',
  async run(surroundings) {
    const { config, env, runners, signal } = surroundings;
    const bundle = await attempt(() => hostCertificates(config, env));
    await using access = await accessService({
      ...surroundings,
      // A bad one is a finding of its own.
      caBundle: bundle.got ? bundle.value?.pem : undefined,
      integrations: integrationsOf(runners),
    });
    const { organization, credential, permissions } = await access.client.call('auth.whoami', {}, { signal });
    const key = credential.kind === 'apiKey' ? `key ${credential.start ?? ''}…` : credential.kind;
    const found = `${access.name === 'embedded' ? 'the embedded one' : access.name}: ${organization.name}, ${key}`;
    const missing = wanted.filter((permission) => !permissions.includes(permission));
    if (missing.length === 0) return { state: 'ok', found };
    const mend = 'Take a key that has them, should runs be refused.';
    return { state: 'warn', found: `${found}, without ${missing.join(' and ')}`, mend };
  },
};
