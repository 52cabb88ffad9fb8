/* What Grafana takes as a dashboard of our kinds of panels, put together from the types that it generates from its own schemas
   (https://www.npmjs.com/package/@grafana/schema). Those of a panel's queries are not among them: the queries are put to a Prometheus. */

import type { Dashboard, FieldConfig, Panel } from '@grafana/schema';
import type * as bargauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as timeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as series from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

/* As it stands in JSON: the values of enumerations in place of their names. */
type Json<T> = unknown extends T ? unknown
  : T extends string ? `${T}`
  : T extends readonly (infer Item)[] ? Json<Item>[]
  : T extends object ? { [Key in keyof T]: Json<T[Key]> }
  : T;
/* The same of what Grafana completes with its defaults. */
type Some<T> = unknown extends T ? unknown
  : T extends string ? `${T}`
  : T extends readonly (infer Item)[] ? Some<Item>[]
  : T extends object ? { [Key in keyof T]?: Some<T[Key]> }
  : T;

type Of<Type, Options, Custom> = Json<Omit<Panel, 'type' | 'options' | 'fieldConfig'>> & {
  type: Type;
  options: Some<Options>;
  fieldConfig: {
    defaults: Json<Omit<FieldConfig, 'custom'>> & { custom?: Some<Custom> };
    overrides: Json<NonNullable<Panel['fieldConfig']>['overrides']>;
  };
};

export type Board = Json<Omit<Dashboard, 'panels'>>;
export type Panels = {
  bargauge: Of<'bargauge', bargauge.Options, Record<string, never>>;
  stat: Of<'stat', stat.Options, Record<string, never>>;
  'state-timeline': Of<'state-timeline', timeline.Options, timeline.FieldConfig>;
  table: Of<'table', table.Options, table.FieldConfig>;
  timeseries: Of<'timeseries', series.Options, series.FieldConfig>;
};
