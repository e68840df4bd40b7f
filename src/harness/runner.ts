import type { Clock } from '../clock.ts';
import type { TrajectoryEntry, Usage } from '../contract/report.ts';
import type { Container } from '../engine/container.ts';
import type { ChatAnswer, ChatRequest } from '../gateway/chat/chat.ts';
import type { Wire } from '../suite/model-config.ts';
import type { Profile } from '../suite/plan.ts';

/** The definition of one harness, as each folder under `runners/` exports it. */
export interface Runner {
  /** The harness's name in suite files and requests. */
  name: string;
  /** For people. */
  label: string;
  /**
   * The npm package it drives and the version it is known to work with; a profile's `version` overrides that.
   */
  cli?: { package: string; version: string };
  /**
   * The wires it can speak to its model, best first; `any` where this process speaks for it; empty where it
   * needs no configured model.
   */
  wires: readonly Wire[] | 'any';
  /** Whether its stream tells the commands it ran; where not, they are rebuilt from its model traffic. */
  tellsCommands: boolean;
  /** Whether its session can take a second message. */
  continues: boolean;
  /** Whether it can be given tool servers (`mcpServers` of a profile). */
  mcp: boolean;
  /** Limits of a profile that it keeps to by itself. */
  limits: readonly 'turns'[];
  /**
   * A script that installs it, with network, once for all trials; the profile's own `install` runs after it.
   */
  install?(profile: Profile): string;
  open(context: HarnessContext): HarnessSession;
}

/** What a harness is given to work with. The container is started, and its relay listens. */
export interface HarnessContext {
  container: Container;
  profile: Profile;
  /** The whole environment of the harness's processes, prompt and variables included. */
  env: Record<string, string>;
  /** Absolute path in the sandbox; the harness's working folder. */
  workspace: string;
  /**
   * Absolute path of a folder in the sandbox, outside the workspace, for the harness's own files; there is
   * nothing in it yet.
   */
  home: string;
  /** Undefined where the variant's model is not configured, or the sandbox may not reach it. */
  model: ModelAccess | undefined;
  clock: Clock;
}

/** The model as a harness in the sandbox reaches it. */
export interface ModelAccess {
  /** The name to ask for it by. */
  name: string;
  /** The first of the runner's wires that the model speaks. */
  wire: Wire;
  /** `http://127.0.0.1:PORT`, without `/v1`. */
  origin: string;
  /** Goes where a key would. Worth nothing outside this trial, yet never in argv. */
  token: string;
  contextWindow: number | undefined;
  maxOutputTokens: number | undefined;
  /** Asks the model from this process. */
  chat(request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
}

/** One conversation with a harness. */
export interface HarnessSession {
  /**
   * Gives the harness a message and lets it work until the end of its turn. Not called again where the runner
   * does not continue. Throws only infrastructure errors; what the harness did is in the result, whatever it
   * did.
   */
  turn(message: string, limits: TurnLimits): Promise<HarnessRun>;
}

export interface TurnLimits {
  timeoutMs: number;
  /** Cancels the trial: the turn may reject then. */
  signal: AbortSignal;
  /**
   * Ends the turn early and keeps what there is, as a budget that is spent does; its reason's message becomes
   * the ending's.
   */
  stop: AbortSignal;
}

/** What one turn brings back. */
export interface HarnessRun {
  ending: HarnessEnding;
  /** The commands the harness ran, in order. */
  trajectory: TrajectoryEntry[];
  /** What else it told, in order: messages, tools that are no commands. */
  events: HarnessEvent[];
  /** Whether it told more than these two hold. */
  isCut?: boolean | undefined;
  /** What it said last to the user. */
  finalMessage?: string | undefined;
  /** The beginning and the end of what it printed on both streams, where it is a program. */
  lastOutput?: string | undefined;
  /** The version that it says it has. */
  version?: string | undefined;
  /** Its own count of this turn's tokens, to check ours with. Input tokens include cached ones. */
  usage?: Usage | undefined;
  /** Its own count of this turn's commands, where its stream tells one apart from the commands themselves. */
  commandCount?: number | undefined;
}

/** How a turn ended. The exit code does not decide the verdict. */
export type HarnessEnding =
  | { ended: 'exited'; exitCode: number }
  /** The harness says that it gave up, or ran into a limit of its own. */
  | { ended: 'agent-failed'; message: string; exitCode?: number | undefined }
  /** Its model did not answer, or answered with errors, to the end. */
  | { ended: 'model-failed'; message: string; exitCode?: number | undefined }
  /** It crashed, or printed what no known version prints: nothing is known of the agent. */
  | { ended: 'runner-broke'; message: string; exitCode?: number | undefined }
  | { ended: 'timed-out'; afterMs: number }
  /** `stop` ended it. */
  | { ended: 'stopped'; message: string }
  /** It wrote more than the sandbox may hold. */
  | { ended: 'out-of-disk' }
  | { ended: 'out-of-memory' };

/** Times are epoch milliseconds, stamped on arrival. */
export type HarnessEvent =
  | { kind: 'user' | 'message' | 'note'; at: number; text: string }
  | {
      kind: 'tool';
      at: number;
      finishedAt?: number | undefined;
      name: string;
      input: unknown;
      output?: string | undefined;
      failed?: boolean | undefined;
    };
