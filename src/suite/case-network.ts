import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { FileIssue } from './file-issues.ts';
import { permittedBy } from './hosts/host-pattern.ts';
import type { SandboxConfig } from './sandbox-config.ts';

/** The hosts that the agent of a case, or its tests, may reach at most. */
export interface CaseNetwork {
  /** As `hosts` of a sandbox. Empty for none. */
  hosts: string[];
  /** Where the case says so. */
  at: Omit<FileIssue, 'message'>;
}

type Reached = Pick<SandboxConfig, 'network' | 'hosts'>;

interface NamesHosts {
  network?: CaseNetwork | undefined;
}

/** The parts of a case that name hosts. */
interface NamedHosts {
  agent?: NamesHosts | undefined;
  tests?: (NamesHosts & { fresh?: unknown }) | undefined;
  steps?: { list: readonly { agent: NamesHosts; tests: NamesHosts & { fresh?: unknown } }[] } | undefined;
}

/** Why a sandbox cannot give a case the network that it asks for. */
export interface NetworkProblem {
  /** `missing`: the user did not permit the hosts. `mixed`: the network of the sandbox is open for all. */
  kind: 'missing' | 'mixed';
  at: CaseNetwork['at'];
  hosts: string[];
}

/**
 * The problems with the network of a case in a sandbox, each once. Empty if the case can run in the sandbox.
 */
export function networkProblems(of: NamedHosts, sandbox: Reached): NetworkProblem[] {
  const agents = agentsOf(of);
  const tests = (of.steps?.list ?? [of]).flatMap((one) => (one.tests ? [one.tests] : []));
  const asked = [...agents, ...tests.map(({ network }) => network)].filter((one) => one !== undefined);
  const problems = asked.flatMap((network): NetworkProblem[] => {
    const { missing } = permittedIn(sandbox, network);
    return missing.length === 0 ? [] : [{ kind: 'missing', at: network.at, hosts: missing }];
  });
  // A container has one network: it cannot be open for one step, and closed for another or for the tests.
  const shared = [...agents, ...tests.filter(({ fresh }) => !fresh).map(({ network }) => network)];
  const limited = shared.find((network) => network !== undefined);
  if (sandbox.network === 'open' && limited && agents.includes(undefined))
    problems.push({ kind: 'mixed', at: limited.at, hosts: limited.hosts });
  return [...new Map(problems.map((problem) => [JSON.stringify(problem), problem])).values()];
}

function agentsOf({ agent, steps }: NamedHosts): (CaseNetwork | undefined)[] {
  return steps ? steps.list.map((step) => step.agent.network) : [agent?.network];
}

/**
 * The sandbox of a case, with the hosts that its agents may reach. If its steps differ, each has a part of
 * them: see {@link agentSandbox}. Throws an input error if the sandbox permits less than the case asks for.
 */
export function caseSandbox<Given extends Reached & { name: string }>(sandbox: Given, of: NamedHosts): Given {
  const [problem] = networkProblems(of, sandbox);
  if (problem) throw notPermitted(problem, sandbox.name);
  const agents = agentsOf(of);
  const limited = agents.filter((network) => network !== undefined);
  const [first] = limited;
  if (!first || limited.length < agents.length) return sandbox;
  return agentSandbox(sandbox, { ...first, hosts: limited.flatMap(({ hosts }) => hosts) });
}

/** A sandbox with exactly those of its hosts that an agent may reach. The model stays. */
export function agentSandbox<Given extends Reached>(sandbox: Given, network: CaseNetwork | undefined): Given {
  if (!network || sandbox.network === 'none') return sandbox;
  const { hosts } = permittedIn(sandbox, network);
  return { ...sandbox, network: hosts.length > 0 ? 'allowlist' : 'model', hosts };
}

/**
 * The hosts that tests may reach. Tests that name no hosts may reach those of the sandbox, but only if the
 * sandbox has `testsNetwork`.
 */
export function testsHosts(
  { testsNetwork, ...sandbox }: Reached & Pick<SandboxConfig, 'testsNetwork'>,
  network: CaseNetwork | undefined,
): string[] {
  if (network) return permittedIn(sandbox, network).hosts;
  return testsNetwork && sandbox.network === 'allowlist' ? sandbox.hosts : [];
}

/** The part of the hosts that a sandbox permits, and those that it does not. */
function permittedIn({ network, hosts }: Reached, asked: CaseNetwork) {
  const all = [...new Set(asked.hosts)];
  if (network === 'open') return { hosts: all, missing: [] };
  const named = network === 'allowlist' ? hosts : [];
  const parts = all.map((host) => ({ host, permitted: permittedBy(named, host) }));
  return {
    hosts: [...new Set(parts.flatMap(({ permitted }) => permitted))],
    missing: parts.filter(({ permitted }) => permitted.length === 0).map(({ host }) => host),
  };
}

function notPermitted({ kind, at, hosts }: NetworkProblem, name: string): OffsiteError {
  const place = `${at.file}:${at.line}:${at.column}: ${at.path}`;
  const what =
    kind === 'missing'
      ? `the sandbox ${name} does not permit ${hosts.join(', ')}`
      : `the network of the sandbox ${name} is open, also where the case closes it`;
  return inputError('HOSTS_NOT_PERMITTED', `${place}: ${what}`, {
    hint: 'Name the hosts under hosts of the sandbox in offsite.yaml, with network: allowlist.',
  });
}
