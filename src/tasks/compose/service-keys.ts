/**
 * Keys of a service that Offsite does not read. `same`: they change nothing here. `note`: what Offsite does
 * differently. `obstacle`: why Offsite cannot run the task.
 */
export type KeyRule = 'same' | { note: string } | { obstacle: string };

type Rule = KeyRule | ((value: unknown) => KeyRule);

const seal = 'it would open the sandbox to the machine';
const own = 'the limits of the sandbox apply in its place';

/** By the key of the service. Others are obstacles. */
const rules: Readonly<Record<string, Rule>> = {
  restart: { note: 'is ignored' },
  annotations: 'same',
  attach: 'same',
  develop: 'same',
  scale: (value) => (value === 1 ? 'same' : { obstacle: 'a service is one container here' }),
  // The sandbox has limits of its own in place of these.
  ulimits: { note: own },
  pids_limit: { note: own },
  mem_reservation: { note: own },
  mem_swappiness: { note: own },
  memswap_limit: { note: own },
  cpu_shares: { note: own },
  cpu_period: { note: own },
  cpu_quota: { note: own },
  cpu_count: { note: own },
  cpu_percent: { note: own },
  cpuset: { note: own },
  blkio_config: { note: own },
  oom_kill_disable: { note: own },
  oom_score_adj: { note: own },
  platform: { note: 'the image that the engine has is used' },
  read_only: unlessFalse({ note: 'its files can be written here' }),
  dns: { note: 'no name server is reached here' },
  dns_search: { note: 'no name server is reached here' },
  dns_opt: { note: 'no name server is reached here' },
  domainname: { note: 'is ignored' },
  cap_drop: { note: 'root has five capabilities here: CHOWN, DAC_OVERRIDE, FOWNER, SETGID and SETUID' },
  // These would give a container more access than a sandbox has.
  cap_add: (value) => (isList(value, hasCapability) ? 'same' : { obstacle: seal }),
  privileged: unlessFalse({ obstacle: seal }),
  devices: unlessEmpty({ obstacle: seal }),
  device_cgroup_rules: unlessEmpty({ obstacle: seal }),
  network_mode: (value) => (value === 'bridge' ? 'same' : { obstacle: 'a trial has a network of its own' }),
  pid: { obstacle: seal },
  ipc: (value) => (['private', 'shareable'].includes(String(value)) ? 'same' : { obstacle: seal }),
  uts: { obstacle: seal },
  userns_mode: { obstacle: seal },
  cgroup: (value) => (value === 'private' ? 'same' : { obstacle: seal }),
  cgroup_parent: { obstacle: seal },
  runtime: { obstacle: 'the runtime is that of the sandbox in offsite.yaml' },
  security_opt: (value) =>
    isList(value, isNoNewPrivileges)
      ? 'same'
      : { obstacle: 'the filters of Offsite cannot be removed from a container' },
  sysctls: { obstacle: seal },
  volumes_from: { obstacle: 'containers share no files here' },
};

/** What Offsite does with a key of a service. */
export function keyRule(key: string, value: unknown): KeyRule {
  const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
  if (rule === undefined) return { obstacle: '' };
  return typeof rule === 'function' ? rule(value) : rule;
}

function unlessFalse(rule: KeyRule): Rule {
  return (value) => (value === false ? 'same' : rule);
}

function unlessEmpty(rule: KeyRule): Rule {
  return (value) => (Array.isArray(value) && value.length === 0 ? 'same' : rule);
}

function isList(value: unknown, is: (text: string) => boolean): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && is(each));
}

/** The capabilities that root has in a sandbox anyway. */
function hasCapability(name: string): boolean {
  return /^(CAP_)?(CHOWN|DAC_OVERRIDE|FOWNER|SETGID|SETUID)$/i.test(name);
}

/** Offsite sets it for all containers. */
function isNoNewPrivileges(option: string): boolean {
  return /^no-new-privileges([:=]true)?$/.test(option);
}
