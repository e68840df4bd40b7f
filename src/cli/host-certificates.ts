import { type CaBundle, caBundleOf, npmCafile } from '../base-image/host-certificates.ts';
import type { Config } from '../suite/config-file.ts';

/**
 * The certificates that this host trusts besides the usual ones: `caBundle` of the configuration, else what
 * the environment and npm name.
 */
export async function hostCertificates(
  config: Config,
  env: NodeJS.ProcessEnv,
): Promise<CaBundle | undefined> {
  const sources = { env, npmCafile: await npmCafile(env) };
  return caBundleOf(config.caBundle === undefined ? sources : { ...sources, explicit: config.caBundle });
}
