import { caBundleOf, hostCertificates } from '../../host-certificates.ts';
import type { Check } from '../check.ts';
import { attempt } from '../examine.ts';

/** Other programs use these too. Like them, Offsite ignores a missing file; this check reports it. */
const variables = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'] as const;

export const certificates: Check = {
  name: 'certificates',
  async run({ config, env }) {
    const bundle = await hostCertificates(config, env);
    for (const name of variables) {
      const path = env[name];
      if (!path || path === bundle?.path) continue;
      if (!(await attempt(() => caBundleOf({ env: {}, explicit: path }))).got) {
        const fix = `Correct ${name}, or unset it.`;
        return { state: 'warn', found: `${name} names ${path}, which is no readable PEM file`, fix };
      }
    }
    if (bundle === undefined)
      return { state: 'ok', found: 'no CA bundle is named; only the public authorities are trusted' };
    const count = bundle.pem.toString('latin1').split('-----BEGIN CERTIFICATE-----').length - 1;
    const who = config.caBundle === bundle.path ? 'caBundle of the configuration' : bundle.namedBy;
    return { state: 'ok', found: `${bundle.path} (${who}): ${count} certificates` };
  },
};
