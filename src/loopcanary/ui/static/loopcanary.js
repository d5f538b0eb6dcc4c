// What the pages can do beyond being read: charts, flame graphs, copying, and following what goes on.
import { drawCharts } from "./charts.js";
import { drawFlames } from "./flames.js";
import { follow } from "./follow.js";
import { offerSharing } from "./sharing.js";

function dress(root) {
  drawCharts(root);
  drawFlames(root);
}

// The libraries are deferred classic scripts, which have run when a module does.
dress(document);
offerSharing(document);
follow(dress);
