import type { FileIssue } from '../suite/file-issues.ts';
import type { RowTest, taskFormats } from '../suite/tasks-source.ts';
import type { Note, Obstacle } from './supported.ts';

/** A task as Offsite understands it, whatever format it was written in. */

export type TaskFormat = (typeof taskFormats)[number];

export interface Task {
  /** The name of the task's folder, or of its row. It becomes the case id. */
  id: string;
  /** The name that the task gives itself; else its id. */
  name: string;
  format: TaskFormat;
  /** The absolute path of the task's folder, or of the file that has it as a row. */
  place: string;
  description: string | undefined;
  /** What the agent is asked. Empty for a task of several steps, each of which has its own. */
  instruction: string;
  environment: TaskEnvironment;
  agent: TaskAgent;
  verifier: TaskVerifier;
  solution: TaskSolution | undefined;
  /** In order. Empty for a task of one step. */
  steps: readonly TaskStep[];
  /** How the rewards of steps become the reward of the task. */
  rewardStrategy: 'mean' | 'final';
  artifacts: readonly TaskArtifact[];
  keywords: readonly string[];
  /** Whatever else the author says of the task. */
  metadata: Readonly<Record<string, unknown>>;
  /** What Offsite ignores, or does in another way. */
  notes: readonly Note[];
  /** Why Offsite cannot run the task. Empty for a task that it can run. */
  obstacles: readonly Obstacle[];
}

/** The value of an environment variable: a text, or the value of a variable of the machine. */
export type TaskVariable = string | { fromHost: string; otherwise: string | undefined };

/** Where a container starts from. All paths are absolute paths on the host. */
export type ContainerSource =
  | { kind: 'image'; image: string }
  | {
      kind: 'build';
      context: string;
      dockerfile: string;
      target: string | undefined;
      args: Readonly<Record<string, TaskVariable>>;
    }
  /** The format leaves it to the person who runs the task. */
  | { kind: 'unnamed' };

export interface TaskEnvironment {
  source: ContainerSource;
  /** The containers beside the main one. */
  services: readonly TaskService[];
  /** What a compose file says of the main container. The fields below repeat what they can express of it. */
  main: TaskService | undefined;
  /** A folder whose files are put into the working directory. Absolute. */
  files: string | undefined;
  workdir: string | undefined;
  user: string | undefined;
  env: Readonly<Record<string, TaskVariable>>;
  /** Cores; may be fractional. Undefined for no limit, as with the others. */
  cpus: number | undefined;
  memoryBytes: number | undefined;
  diskBytes: number | undefined;
  gpus: number;
  os: 'linux' | 'windows';
  network: TaskNetwork;
  healthcheck: TaskHealthcheck | undefined;
  /** What the format's own program starts with the container. Undefined if it starts nothing of the task. */
  startUp: TaskStartUp | undefined;
  mcpServers: readonly TaskMcpServer[];
  /** A folder in the container. */
  skillsFolder: string | undefined;
  buildTimeoutMs: number | undefined;
}

/** In place of the image's own entrypoint and command, by the rules of engines. */
export interface TaskStartUp {
  entrypoint: readonly string[] | undefined;
  command: readonly string[] | undefined;
}

export type TaskNetwork =
  | { mode: 'public' }
  | { mode: 'none'; at: FileIssue }
  /** Names, names that begin with `*.`, addresses, and ranges of addresses. */
  | { mode: 'allowlist'; hosts: readonly string[]; at: FileIssue };

export interface TaskService {
  name: string;
  /** Where the compose file defines it: `docker-compose.yaml:3:5`. */
  place: string;
  /** Further names that other containers reach it by. */
  aliases: readonly string[];
  source: ContainerSource;
  command: readonly string[] | undefined;
  entrypoint: readonly string[] | undefined;
  env: Readonly<Record<string, TaskVariable>>;
  /** Further addresses by name. */
  hosts: Readonly<Record<string, string>>;
  workdir: string | undefined;
  user: string | undefined;
  /** `none`: not even that of the image. Undefined: that of the image. */
  healthcheck: ServiceHealthcheck | 'none' | undefined;
  dependsOn: readonly { service: string; until: 'started' | 'healthy' | 'ended' }[];
  files: readonly ServiceFile[];
  cpus: number | undefined;
  memoryBytes: number | undefined;
}

/** Something that is put into a service, or mounted there. */
export type ServiceFile =
  /** A file or folder of the task. `from` is an absolute path on the host. */
  | { kind: 'file'; from: string; to: string; readOnly: boolean }
  | { kind: 'content'; content: string; to: string }
  /** A volume of the engine, by the name that services share it under. */
  | { kind: 'volume'; volume: string; to: string; readOnly: boolean }
  /** A folder in memory. */
  | { kind: 'memory'; to: string };

export interface TaskHealthcheck {
  /** Run by a shell. */
  command: string;
  intervalMs: number;
  timeoutMs: number;
  startPeriodMs: number;
  startIntervalMs: number;
  retries: number;
}

export interface ServiceHealthcheck extends Omit<TaskHealthcheck, 'command'> {
  /** A text is run by a shell. */
  command: string | readonly string[];
}

export interface TaskMcpServer {
  name: string;
  transport: 'sse' | 'stdio' | 'http';
  url: string | undefined;
  command: string | undefined;
  args: readonly string[];
  headers: Readonly<Record<string, string>>;
}

export interface TaskAgent {
  /** Undefined for no limit. */
  timeoutMs: number | undefined;
  user: string | undefined;
  /** Undefined for that of the environment. */
  network: TaskNetwork | undefined;
}

/** How a task is graded. */
export interface TaskVerifier {
  /** `shared`: in the agent's own environment. `separate`: in another one, which gets the artifacts. */
  mode: 'shared' | 'separate';
  /** For `separate`. Undefined for a fresh one of the task's. */
  environment: TaskEnvironment | undefined;
  timeoutMs: number;
  env: Readonly<Record<string, TaskVariable>>;
  user: string | undefined;
  network: TaskNetwork | undefined;
  /** Put in place after the agent's end, in this order; later ones replace files of earlier ones. */
  tests: readonly PlacedFolder[];
  /** Undefined if the format grades without a command of the task. */
  command: readonly string[] | undefined;
  reading: RewardReading;
  collect: readonly CollectHook[];
}

/** A folder or file on the host, and its path in the container. */
export interface PlacedFolder {
  from: string;
  to: string;
  /** Patterns as in a `.gitignore` of the task's folder: `filesBelow()` leaves these files out. */
  ignored: readonly string[];
}

/** How the outcome of a verifier becomes rewards. */
export type RewardReading =
  /** Files that the verifier writes; see `harbor/reward.ts`. */
  | { kind: 'reward-files'; json: string; text: string }
  /** What the verifier prints; see `terminal-bench/`. */
  | { kind: 'printed-tests'; parser: 'pytest' | 'swebench' }
  /** Named tests; see `swe-bench/log-parsers.ts`. */
  | {
      kind: 'named-tests';
      testPatch: string;
      /** The commit that the patch applies to. */
      base: string;
      failToPass: readonly string[];
      passToPass: readonly string[];
      parser: RowTest['parser'];
      /** The absolute path of a report that the tests may write. */
      report: string;
      /** Names of files that the tests get as they are in the image, whatever the agent made of them. */
      restored: readonly string[];
    }
  /** By a parser that Offsite does not have. */
  | { kind: 'unknown'; name: string };

/** A command that runs in a container before its artifacts are collected. */
export interface CollectHook {
  command: string;
  service: string;
  timeoutMs: number;
  user: string | undefined;
}

/** The author's own way to solve the task. */
export type TaskSolution =
  | {
      kind: 'script';
      files: PlacedFolder | undefined;
      command: readonly string[];
      env: Readonly<Record<string, TaskVariable>>;
    }
  /** Commands that are typed into a terminal. */
  | { kind: 'commands'; commands: readonly string[] }
  /** A patch of the workspace, as `git apply` takes it. */
  | { kind: 'patch'; patch: string };

export interface TaskArtifact {
  /** An absolute path in the container. */
  source: string;
  destination: string | undefined;
  exclude: readonly string[];
  service: string;
}

export interface TaskStep {
  name: string;
  instruction: string;
  agent: TaskAgent;
  verifier: TaskVerifier;
  solution: TaskSolution | undefined;
  /** A folder whose files are put into the working directory before the step. */
  workdirFiles: string | undefined;
  /** A script among them that then runs. */
  setup: string | undefined;
  healthcheck: TaskHealthcheck | undefined;
  /** Beside those of the task. */
  artifacts: readonly TaskArtifact[];
  /** If a reward is lower, no further step runs. By the name of the reward. */
  minReward: Readonly<Record<string, number>>;
}
