import { OffsiteError } from '../../base/offsite-error.ts';

/** A file or folder of a context. */
export interface ContextMember {
  /** Relative to the context, with `/`. */
  path: string;
  type: 'file' | 'folder' | 'symlink';
  mode: number;
  size: number;
  linkTarget?: string;
  modifiedAt: Date;
}

export interface ImageBuild {
  name: string;
  labels: Readonly<Record<string, string>>;
  dockerfile: string;
  target: string | undefined;
  args: Readonly<Record<string, string>>;
  /** Values of the arguments for proxies, which every builder knows and none keeps in the image. */
  proxies: Readonly<Record<string, string>>;
  context: {
    folder: string;
    /** The patterns of `.dockerignore`. */
    ignore: string;
    /** What the patterns do not exclude. */
    members: readonly ContextMember[];
  };
  /** What RUN steps may mount by its id. Only BuildKit has secrets. */
  secret: { id: string; content: Buffer } | undefined;
  timeoutMs: number;
  onOutput(text: string): void;
  signal: AbortSignal;
}

export interface ImageBuilder {
  /** `buildkit`: through the docker CLI. `classic`: through the engine's API; it has no secrets or mounts. */
  kind: 'buildkit' | 'classic';
  /** What it understands in Dockerfiles. `older`: BuildKit without here-documents. */
  frontend: 'classic' | 'older' | 'current';
  /**
   * Throws `IMAGE_NOT_BUILT`, an `input` error, if the Dockerfile or one of its steps fails, and
   * `IMAGE_BUILD_TIMEOUT`.
   */
  build(request: ImageBuild): Promise<void>;
}

export function notBuilt(message: string): OffsiteError {
  return new OffsiteError(message, { code: 'IMAGE_NOT_BUILT', kind: 'input' });
}

export function tookTooLong(timeoutMs: number): OffsiteError {
  return new OffsiteError(`it was stopped after ${timeoutMs / 1000} s`, {
    code: 'IMAGE_BUILD_TIMEOUT',
    kind: 'input',
  });
}
