import type { Kit } from '../engine/changes/kit.ts';
import type { Container } from '../engine/container.ts';
import type { EnvironmentStep, UsedImage } from '../record/environment.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { ModelPort } from './model-port.ts';
import type { ServiceAccess, TrialServices } from './services/trial-services.ts';
import type { WorkspaceState } from './workspace/read-workspace.ts';

/** How a container gets the place of a sandbox on the network of its services. */
export type JoinedNetwork = Pick<ServiceAccess, 'network' | 'hosts'>;

/** A workspace in which no harness has worked. */
export interface PreparedWorkspace {
  state: WorkspaceState;
  /** Total bytes of its files, at most. */
  bytes: number;
}

export interface StartedSandbox {
  container: Container;
  /**
   * The image that it was made from. If prepare leaves processes running, prepare ran in the sandbox itself.
   */
  imageId: string;
  /** The user of its commands. Undefined for root. */
  user: string | undefined;
  /** The images that its image is based on. */
  images: UsedImage[];
  /** Install and prepare, in order. */
  environment: EnvironmentStep[];
  /** The workspace as prepare left it. The harness may work before this resolves. */
  prepared: () => Promise<PreparedWorkspace>;
  /**
   * Lists what changed in the container. Undefined if the container's layer can be read directly, or if file
   * times do not show changes.
   */
  kit: Kit | undefined;
  /** The sandbox's way to models and named hosts. Undefined if it may reach none. */
  port: ModelPort | undefined;
  /** Limits that the engine could not apply, and other protections that are missing, one line each. */
  lacks: string[];
  /** What a validator gets in place of variables that name folders in the workspace. */
  closedEnv: Record<string, string>;
  /** The program that its environment starts, which runs in it. Undefined for none. */
  startUp: readonly string[] | undefined;
  /** The absolute path of the Node that runs a validator in it. Undefined for the one on its PATH. */
  validatorNode: string | undefined;
  /** Whether an image of it has all that is in it: no processes of prepare, and no volumes. */
  isCommittable: boolean;
  /** The containers beside it. Undefined if the case has none. */
  services: TrialServices | undefined;
  /** Its place on the network of the services. Undefined if the case has none. */
  joined: JoinedNetwork | undefined;
  /** What is removed with it. */
  besides: AsyncDisposable;
}

/** Removes a sandbox with all that belongs to it. */
export async function removeSandbox({
  container,
  port,
  besides,
}: Pick<StartedSandbox, 'container' | 'port' | 'besides'>): Promise<void> {
  await Promise.all([port?.[Symbol.asyncDispose](), container.remove()]);
  await besides[Symbol.asyncDispose]();
}

/** What a result says about a sandbox, wherever it is used. */
export function sandboxFacts({
  container,
  imageId,
  user,
  environment,
  startUp,
  lacks,
}: StartedSandbox): Partial<TrialRecord> {
  return {
    sandboxId: container.id,
    imageId,
    workspace: container.workingDir,
    user,
    environment,
    ...(startUp && { startUp: [...startUp] }),
    ...(lacks.length > 0 && { sandboxLacks: lacks }),
  };
}
