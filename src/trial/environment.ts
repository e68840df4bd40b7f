import { type Variables, variablesAsEnvironment } from '../suite/variables.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/**
 * Variables for every script in a sandbox. `host-environment.ts` decides which of the host's variables are
 * added.
 */
const base: Record<string, string> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
};

/** The environment of verify and of the validator. */
export function gradingEnvironment(variables: Variables): Record<string, string> {
  return { ...variablesAsEnvironment(variables), ...base, OFFSITE_WORKSPACE: sandboxPaths.workspace };
}

/**
 * The harness's environment: the prompt as a file and as text, the case's variables, and the profile's
 * variables.
 */
export function harnessEnvironment(
  prompt: string,
  variables: Variables,
  profile: Record<string, string>,
): Record<string, string> {
  return {
    ...gradingEnvironment(variables),
    OFFSITE_PROMPT: prompt,
    OFFSITE_PROMPT_FILE: sandboxPaths.prompt,
    ...profile,
  };
}

/**
 * The environment of install and prepare, which may use the network. If the host trusts extra certificates,
 * these scripts trust them too.
 */
export function preparationEnvironment(
  variables: Variables,
  extraCertificates: boolean,
): Record<string, string> {
  const certificates = sandboxPaths.certificates;
  const trust = {
    NODE_EXTRA_CA_CERTS: certificates,
    SSL_CERT_FILE: certificates,
    CURL_CA_BUNDLE: certificates,
    REQUESTS_CA_BUNDLE: certificates,
    PIP_CERT: certificates,
    GIT_SSL_CAINFO: certificates,
  };
  return { ...gradingEnvironment(variables), ...(extraCertificates ? trust : {}) };
}
