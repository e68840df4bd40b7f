import type { Clock } from '../base/clock.ts';
import { inputError } from '../base/offsite-error.ts';
import type { Usage } from '../contract/report.ts';
import type { Container } from '../engine/container.ts';
import type { ChatAnswer, ChatRequest } from '../gateway/chat/chat.ts';
import type { CommandEntry, HarnessEnding, HarnessEvent } from '../record/harness.ts';
import type { McpTransport } from '../suite/mcp-server.ts';
import type { Wire } from '../suite/model-config.ts';
import type { Profile } from '../suite/plan.ts';
import type { StreamOffer } from '../suite/stream-line.ts';

/** The definition of one harness, as each folder under `runners/` exports it. */
export interface Runner {
  /** The harness's name in suite files and requests. */
  name: string;
  /** The name that people see. */
  label: string;
  /**
   * The package of npm or PyPI that it runs, and the version that it is tested with. A profile's `version`
   * overrides the version.
   */
  cli?: { package: string; version: string };
  /**
   * The wires that it can use for its model, best first. `any`: this process asks the model. Empty: it needs
   * no configured model.
   */
  wires: readonly Wire[] | 'any';
  /** Whether the profile's `run` script is its program. Default: no. */
  runsScript?: boolean;
  /** Whether its stream reports the commands that it ran. If not, they are rebuilt from its model traffic. */
  reportsCommands: boolean;
  /** Whether it says so if its model fails. If not, the gateway's account decides. Default: yes. */
  reportsModelFailure?: boolean;
  /** Whether its session accepts a second message. */
  continues: boolean;
  /** How it can speak to tool servers (`mcpServers` of a profile or of a case). */
  mcp: readonly McpTransport[];
  /**
   * Whether it begins without a tool server that does not start. Then its first request with tools must name
   * each server, in the names of the server's tools. If not, it ends before it asks its model. Default: no.
   */
  startsWithoutServers?: true;
  /** The folder where it looks for skills, below the home of its user: `~/…`. Undefined if it has none. */
  skillsFolder?: `~/${string}`;
  /** The streams that it reads if a profile says so (`stream`). Default: none. */
  streams?: readonly StreamOffer[];
  /** Limits of a profile that it enforces itself. */
  limits: readonly 'turns'[];
  /**
   * Returns a script that installs it. The script runs once for all trials, with network, in an image that
   * has npm. Sandboxes of any image get what it puts into `harnessFolder`, and nothing else.
   */
  install?(profile: Profile): string;
  open(context: HarnessContext): HarnessSession;
}

/** What a harness gets to work with. The container is started, and its relay, if it has one, listens. */
export interface HarnessContext {
  container: Container;
  profile: Profile;
  /**
   * The whole environment of the harness's processes, including the prompt and the variables. Read it in each
   * turn: it says what is left of time and budget, if the profile wants that.
   */
  env: Record<string, string>;
  /** Absolute path in the sandbox. It is the harness's working folder. */
  workspace: string;
  /**
   * Absolute path of a folder in the sandbox, outside the workspace, for the harness's own files. It is empty
   * at first.
   */
  home: string;
  /** Undefined if the variant's model is not configured or the sandbox may not reach it. */
  model: ModelAccess | undefined;
  clock: Clock;
}

/** How a harness in the sandbox reaches its model. */
export interface ModelAccess {
  /** The name to use in requests. */
  name: string;
  /** The runner's first wire that the model also speaks. */
  wire: Wire;
  /** `http://127.0.0.1:PORT`, without `/v1`. Empty for a harness of this process. */
  origin: string;
  /** Takes the place of a key. It is worthless outside this trial, but still must not appear in argv. */
  token: string;
  /** Origin and token in the variables that most clients of all wires read. */
  variables: Record<string, string>;
  contextWindow: number | undefined;
  maxOutputTokens: number | undefined;
  /** Asks the model from this process. */
  chat(request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
}

/**
 * Where the commands of a trial come from: the harness's report, its model traffic, or nowhere, so that they
 * are not known.
 */
export type CommandSource = 'report' | 'traffic' | 'none';

/** One conversation with a harness. */
export interface HarnessSession {
  /**
   * Where its commands come from, if that is for its profile to say. Default: the runner's `reportsCommands`.
   */
  readonly commandsFrom?: CommandSource | undefined;
  /**
   * Gives the harness a message and lets it work until the end of its turn. It is called only once if the
   * runner does not accept a second message (`continues`). Throws only infrastructure errors. Whatever the
   * harness does is in the result.
   */
  turn(message: string, limits: TurnLimits): Promise<HarnessRun>;
  /** Ends what the session left running. It is called once, after the last turn. */
  end?(): Promise<void>;
}

/** What a harness may still use. What is not limited is left out. */
export interface TimeLeft {
  /** Milliseconds, from 0. */
  timeMs: number;
  tokens?: number | undefined;
  usd?: number | undefined;
  requests?: number | undefined;
}

export interface TurnLimits {
  timeoutMs: number;
  /** Returns what is left of time and budget now, if the profile wants the harness to know it. */
  left?: (() => TimeLeft) | undefined;
  /** Cancels the trial. The turn may then reject. */
  signal: AbortSignal;
  /**
   * Ends the turn early, for example because a budget is spent, and keeps the results so far. The message of
   * its reason becomes the message of the ending.
   */
  stop: AbortSignal;
}

/** The result of one turn. */
export interface HarnessRun {
  ending: HarnessEnding;
  /** The commands that the harness ran, in order. */
  trajectory: CommandEntry[];
  /** Other events that it reported, in order: messages, and tools other than commands. */
  events: HarnessEvent[];
  /** Whether it reported more than `trajectory` and `events` hold. */
  isCut?: boolean | undefined;
  /** Its last message to the user. */
  finalMessage?: string | undefined;
  /** The beginning and the end of its output on both streams, if it is a program. */
  lastOutput?: string | undefined;
  /** The version that it reports. */
  version?: string | undefined;
  /** Its own count of this turn's tokens, to compare with ours. Input tokens include cached ones. */
  usage?: Usage | undefined;
  /** Its own count of this turn's commands, if its stream reports a count in addition to the commands. */
  commandCount?: number | undefined;
}

/** Returns the model of a harness that needs one. Throws an `input` error if there is none. */
export function requireModel(label: string, { model }: HarnessContext): ModelAccess {
  if (model !== undefined) return model;
  throw inputError(
    'MODEL_NEEDED',
    `${label} needs a model, but no model is configured that its sandbox can reach`,
    { hint: 'Describe the model under models in offsite.yaml, and use a sandbox whose network is not none.' },
  );
}
