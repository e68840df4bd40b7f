import { taskSets } from '../bounds/tasks.ts';
import type { FileIssue } from '../suite/file-issues.ts';

/**
 * What Offsite does with something that a task asks for. `differs`: it runs the task in another way than the
 * format's own program. `missing`: it cannot run the task. The text says how, or why.
 */
type Support = { differs: string } | { missing: string };

/**
 * What tasks ask for and Offsite does not do as they say, in any format. To support a thing, remove its line
 * here, in the commit that makes the runner do it.
 */
const support = {
  'unnamed-environment': {
    missing: 'the format names no environment: name an image or a build for the rows, such as with --image',
  },
  'two-healthchecks': { missing: 'the task and its compose file each have a healthcheck: remove one' },
  'image-entrypoint': {
    differs: 'it ends with the processes of the agent, and is started again before the tests and each step',
  },
  'main-memory-folder': { differs: 'it is a folder on the disk of the sandbox' },
  'root-workdir': { differs: 'the agent and the tests work in /workspace, and not in /' },
  'shared-workdir': { differs: 'what any program leaves there counts as the work of the agent' },
  'system-workdir': { missing: 'a folder of the system cannot be the workspace' },
  'compose-key': { missing: 'a setting of the compose file is not supported' },
  'machine-host': { missing: 'a host name cannot stand for this machine, which containers cannot reach' },
  'inactive-service': { differs: 'the service is not started, because its profile is not active' },
  'compose-variable': { missing: 'a variable of the compose file has no value' },
  'outside-path': { missing: "the path leads out of the task's folder" },
  'published-port': { differs: 'the port is not published on this machine' },
  'bind-mount': { missing: 'a folder of the host cannot be mounted' },
  'service-file': { differs: 'the file is copied, and not mounted' },
  volume: { missing: 'a volume that several containers share is not supported' },
  'separate-networks': { missing: 'all containers of a task are on one network here' },
  gpu: { missing: 'no GPU can be given to a sandbox' },
  tpu: { missing: 'no TPU can be given to a sandbox' },
  windows: { missing: 'only Linux containers run here' },
  'open-network': { differs: 'the agent and the tests run without a network, except for what is configured' },
  'listed-hosts': { differs: 'programs reach the hosts through the HTTP proxy that their variables name' },
  'unknown-host': { missing: 'only names, names after *. and single addresses can be permitted' },
  'unpermitted-host': {
    missing:
      'the sandbox does not permit it: name it under `hosts` in offsite.yaml, with `network: allowlist`',
  },
  'mixed-networks': {
    missing: 'the sandbox has `network: open` in offsite.yaml, which cannot be closed for a part of a task',
  },
  healthcheck: { differs: 'its interval also applies while it starts' },
  'mcp-elsewhere': { missing: 'a tool server outside the task cannot be reached from the sandbox' },
  'mcp-name': { missing: 'harnesses take only names of letters, digits, _ and - for a tool server' },
  'host-variable': {
    missing: "variables of this machine's environment are not passed on: give the variable a default",
  },
  'host-variable-default': { differs: "the given default is used, whatever this machine's environment says" },
  'agent-without-limit': { differs: "Offsite's own limit on the time of an agent applies" },
  'service-collect-hook': { missing: 'commands in services are not run before artifacts are collected yet' },
  'typed-solution': { missing: 'a solution that is typed into a terminal is not run' },
  'tests-in-same-shell': {
    differs: 'they run in a shell of their own: what a harness leaves in its shell ends with it',
  },
  'test-patch': { missing: 'the test patch cannot be read' },
  'unknown-parser': { missing: "Offsite has no parser for the tests' output" },
  artifacts: { differs: 'only those in the working folder are kept with the result' },
  'whole-artifact': { missing: 'the whole file system cannot be an artifact' },
  'service-artifact': { missing: 'artifacts of services are not collected yet' },
  'no-tests': { missing: 'there is nothing to grade with' },
  'mistyped-key': { missing: 'a key looks mistyped' },
  'schema-version': { missing: 'this version of the format is not known' },
  'older-instruction': { missing: 'the instruction is written in an older form' },
  'shared-environment': { missing: 'the environment is defined outside the task' },
  'machine-limits': { missing: 'the engine has less' },
  builder: { missing: 'the builder of the engine does not have it' },
  'absent-image': {
    missing: 'the engine does not have the image: pull it, or map it with `advanced.images` of offsite.yaml',
  },
  'later-commits': { missing: 'an agent could read the solution there: leave it out of the image' },
  'unsearched-image': { missing: 'its image cannot be searched, so its trials would be void' },
  'not-here': { missing: 'the task is not on this machine' },
  'wrong-digest': { missing: 'the files differ from those that the data set names' },
} as const satisfies Readonly<Record<string, Support>>;

export type Feature = keyof typeof support;

/** Notes that are about no feature. */
const remarked = {
  'unknown-key': 'the format has no such key, and it is ignored',
  'deprecated-key': 'the format has another key for it by now',
  'not-used': 'nothing that the task does here needs it',
  'data-set': 'it is about the data set, and not about this task alone',
};

/** How Offsite deviates in this, or why it cannot do it. Undefined for what it does as it is. */
export function explanation(feature: string): string | undefined {
  if (Object.hasOwn(remarked, feature)) return remarked[feature as keyof typeof remarked];
  if (!Object.hasOwn(support, feature)) return undefined;
  const given: Support = support[feature as Feature];
  return 'differs' in given ? given.differs : given.missing;
}

/** Something about a task that a person should know, with the place in its files. */
export interface Note extends FileIssue {
  kind: Feature | keyof typeof remarked;
}

/** A reason why a task cannot be run here, with the place in its files. */
export interface Obstacle extends FileIssue {
  feature: Feature;
}

/** Collects what a person should know of one task, while it is read. */
export class Remarks {
  readonly notes: Note[] = [];
  readonly obstacles: Obstacle[] = [];

  /** Says that the task asks for something at a place. The message of the place says what, in a few words. */
  uses(feature: Feature, at: FileIssue): void {
    const given: Support = support[feature];
    const issueWith = (text: string) => ({
      ...at,
      message: at.message === '' ? text : `${at.message}: ${text}`,
    });
    if ('differs' in given) this.note(feature, issueWith(given.differs));
    else if (this.obstacles.length < taskSets.count.listed)
      this.obstacles.push({ feature, ...issueWith(given.missing) });
  }

  note(kind: Note['kind'], at: FileIssue): void {
    if (this.notes.length >= taskSets.count.listed) {
      const kinds = this.notes.map((note) => note.kind);
      // The first of a kind takes the place of one that says the same as others.
      const another = kinds.findLastIndex((each, index) => kinds.indexOf(each) < index);
      if (kinds.includes(kind) || another === -1) return;
      this.notes.splice(another, 1);
    }
    this.notes.push({ kind, ...at });
  }
}
