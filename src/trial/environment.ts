import { type Variables, variablesAsEnvironment } from '../suite/variables.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/**
 * What every script in a sandbox starts from. Of the host's environment it gets what host-environment.ts
 * says.
 */
const base: Record<string, string> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
};

/** For verify and validator. */
export function gradingEnvironment(variables: Variables): Record<string, string> {
  return { ...variablesAsEnvironment(variables), ...base, OFFSITE_WORKSPACE: sandboxPaths.workspace };
}

/** For the harness: the prompt as a file and as text, the case's variables, what the profile adds. */
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
 * For install and prepare, which may use the network: where the host trusts more than the usual certificates,
 * so do they.
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
