import type { Container } from '../engine/container.ts';
import type { Image } from '../engine/port/images.ts';
import { fitsEnvironment, type Variables, variablesAsEnvironment } from '../suite/variables.ts';
import { sandboxPaths } from './sandbox-paths.ts';
import type { TrialSpec } from './spec.ts';

/**
 * Variables that every script in a sandbox gets, whatever variables its case has: those of the image, or
 * these. `host-environment.ts` decides which of the host's variables are added.
 */
const base = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
};

export function baseEnvironment({ env }: Pick<Image, 'env'>): Record<string, string> {
  return { PATH: env.PATH ?? base.PATH, LANG: env.LANG ?? base.LANG };
}

/** The variables that name the certificates that programs trust. */
export const trustVariables = [
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'GIT_SSL_CAINFO',
] as const;

/** The environment of verify and of the validator. */
export function gradingEnvironment(
  variables: Variables,
  { env, workingDir }: Pick<Container, 'env' | 'workingDir'>,
): Record<string, string> {
  const { PATH = base.PATH, LANG = base.LANG } = env;
  return { ...variablesAsEnvironment(variables), PATH, LANG, OFFSITE_WORKSPACE: workingDir };
}

/**
 * The harness's environment: the prompt as a file and, if it is short enough, as text, the case's variables,
 * and the profile's variables.
 */
export function harnessEnvironment(
  { prompt, variables, profile, agent }: Pick<TrialSpec, 'prompt' | 'variables' | 'profile' | 'agent'>,
  container: Pick<Container, 'env' | 'workingDir'>,
): Record<string, string> {
  return {
    ...gradingEnvironment(variables, container),
    // A longer prompt is in the file alone: with it, no program would start.
    ...(fitsEnvironment('OFFSITE_PROMPT', prompt) && { OFFSITE_PROMPT: prompt }),
    OFFSITE_PROMPT_FILE: sandboxPaths.prompt,
    ...(agent?.skills !== undefined && { OFFSITE_SKILLS: agent.skills }),
    ...profile.env,
  };
}

/**
 * The environment of install and prepare, which may use the network. If the host trusts extra certificates,
 * these scripts trust them too.
 */
export function preparationEnvironment(
  variables: Variables,
  container: Pick<Container, 'env' | 'workingDir'>,
  extraCertificates: boolean,
): Record<string, string> {
  const trust = Object.fromEntries(trustVariables.map((name) => [name, sandboxPaths.certificates]));
  return { ...gradingEnvironment(variables, container), ...(extraCertificates ? trust : {}) };
}
