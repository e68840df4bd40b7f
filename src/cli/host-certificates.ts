import { type CaBundle, caBundleOf, npmCafile } from '../base-image/host-certificates.ts';
import type { Config } from '../suite/config-file.ts';

/**
 * The certificates that this host trusts in addition to the public authorities: `caBundle` of the
 * configuration, else the bundle that the environment or npm names.
 */
export async function hostCertificates(
  config: Config,
  env: NodeJS.ProcessEnv,
): Promise<CaBundle | undefined> {
  const sources = { env, npmCafile: await npmCafile(env) };
  return caBundleOf(config.caBundle === undefined ? sources : { ...sources, explicit: config.caBundle });
}
