import type { TaskDocument } from '../document.ts';
import type { Remarks } from '../supported.ts';
import type { ContainerSource } from '../task.ts';
import type { TaskFolder } from '../task-folder.ts';
import type { ComposeFile } from './compose-file.ts';

export interface ComposeRequest {
  folder: TaskFolder;
  remarks: Remarks;
  /** The absolute path of the compose file. */
  file: string;
  /** The service that the agent works in. */
  mainName: string;
  /** What the main service starts from if the file does not say it. */
  base: ContainerSource | undefined;
  /** The values of the variables in the file. */
  variables: Readonly<Record<string, string>>;
}

/** What the readers of services work with. */
export interface ComposeSource extends ComposeRequest {
  document: TaskDocument;
  /** The folder that relative paths start from. */
  project: string;
  compose: ComposeFile;
}
