import type { CollectCommand } from '../suite/case-tests.ts';
import type { StartUp } from '../suite/environment.ts';
import type { FileIssue } from '../suite/file-issues.ts';
import type { McpServer } from '../suite/mcp-server.ts';
import type { Healthcheck, ServiceHealthcheck } from '../suite/services.ts';
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
  /** What the agent is asked. Empty for a task of several steps, each of which has its own. */
  instruction: string;
  environment: TaskEnvironment;
  agent: TaskAgent;
  verifier: TaskVerifier;
  solution: TaskSolution | undefined;
  /** In order. Empty for a task of one step. */
  steps: TaskStep[];
  /** How the rewards of steps become the reward of the task. */
  rewardStrategy: 'mean' | 'final';
  artifacts: TaskArtifact[];
  keywords: string[];
  /** What Offsite ignores, or does in another way. */
  notes: Note[];
  /** Why Offsite cannot run the task. Empty for a task that it can run. */
  obstacles: Obstacle[];
}

/** Where a container starts from. All paths are absolute paths on the host. */
export type ContainerSource =
  | { kind: 'image'; image: string }
  | {
      kind: 'build';
      context: string;
      dockerfile: string;
      target: string | undefined;
      args: Record<string, string>;
    }
  /** The format leaves it to the person who runs the task. */
  | { kind: 'unnamed' };

export interface TaskEnvironment {
  source: ContainerSource;
  /** The containers beside the main one. */
  services: TaskService[];
  /** What a compose file says of the main container. The fields below repeat what they can express of it. */
  main?: TaskService | undefined;
  /** A folder whose files are put into the working directory. Absolute. */
  files?: string | undefined;
  workdir?: string | undefined;
  user?: string | undefined;
  env: Record<string, string>;
  /** Cores; may be fractional. Undefined for no limit, as with the others. */
  cpus?: number | undefined;
  memoryBytes?: number | undefined;
  diskBytes?: number | undefined;
  network: TaskNetwork;
  healthcheck?: Healthcheck | undefined;
  /** What the format's own program starts with the container. Undefined if it starts nothing of the task. */
  startUp?: StartUp | undefined;
  mcpServers: Record<string, McpServer>;
  /** A folder in the container. */
  skillsFolder?: string | undefined;
  buildTimeoutMs?: number | undefined;
}

/** What an environment is if a format says nothing more of it. */
export const plainEnvironment: Omit<TaskEnvironment, 'source'> = {
  services: [],
  env: {},
  network: { mode: 'public' },
  mcpServers: {},
};

export type TaskNetwork =
  | { mode: 'public' }
  | { mode: 'none'; at: FileIssue }
  /** Names, names that begin with `*.`, addresses, and ranges of addresses. */
  | { mode: 'allowlist'; hosts: string[]; at: FileIssue };

export interface TaskService {
  name: string;
  /** Where the compose file defines it. */
  place: FileIssue;
  /** Further names that other containers reach it by. */
  aliases: string[];
  source: ContainerSource;
  command: string[] | undefined;
  entrypoint: string[] | undefined;
  env: Record<string, string>;
  /** Further addresses by name. */
  hosts: Record<string, string>;
  workdir: string | undefined;
  user: string | undefined;
  /** `none`: not even that of the image. Undefined: that of the image. */
  healthcheck: ServiceHealthcheck | 'none' | undefined;
  dependsOn: { service: string; until: 'started' | 'healthy' | 'ended' }[];
  files: ServiceFile[];
  cpus: number | undefined;
  memoryBytes: number | undefined;
}

/** Something that is put into a service, or mounted there. */
export type ServiceFile =
  /** A file or folder of the task. `from` is an absolute path on the host. */
  | { kind: 'file'; from: string; to: string }
  | { kind: 'content'; content: string; to: string }
  /** A volume of the engine, by the name that services share it under. */
  | { kind: 'volume'; volume: string; to: string }
  /** A folder in memory. */
  | { kind: 'memory'; to: string };

export interface TaskAgent {
  /** Undefined for no limit. */
  timeoutMs?: number | undefined;
  user?: string | undefined;
  /** Undefined for that of the environment. */
  network?: TaskNetwork | undefined;
}

/** How a task is graded. */
export interface TaskVerifier {
  /** `shared`: in the agent's own environment. `separate`: in another one, which gets the artifacts. */
  mode: 'shared' | 'separate';
  /** For `separate`. Undefined for a fresh one of the task's. */
  environment?: TaskEnvironment | undefined;
  timeoutMs: number;
  env: Record<string, string>;
  user?: string | undefined;
  network?: TaskNetwork | undefined;
  /** Put in place after the agent's end, in this order; later ones replace files of earlier ones. */
  tests: PlacedFolder[];
  /** Undefined if the format grades without a command of the task. */
  command: string[] | undefined;
  reading: RewardReading;
  collect: CollectCommand[];
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
      failToPass: string[];
      passToPass: string[];
      parser: RowTest['parser'];
      /** The absolute path of a report that the tests may write. */
      report: string;
      /** Names of files that the tests get as they are in the image, whatever the agent made of them. */
      restored: string[];
    }
  /** By a parser that Offsite does not have. */
  | { kind: 'unknown'; name: string };

/** The author's own way to solve the task. */
export type TaskSolution =
  | {
      kind: 'script';
      files: PlacedFolder;
      command: string[];
      env: Record<string, string>;
    }
  /** A patch of the workspace, as `git apply` takes it. */
  | { kind: 'patch'; patch: string };

export interface TaskArtifact {
  /** An absolute path in the container. */
  source: string;
  exclude: string[];
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
  healthcheck: Healthcheck | undefined;
  /** Beside those of the task. */
  artifacts: TaskArtifact[];
  /** If a reward is lower, no further step runs. By the name of the reward. */
  minReward: Record<string, number>;
}
